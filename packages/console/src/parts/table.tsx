/** The head of a table. A column's class: `number` aligns it to the right, `more` hides it in narrow windows. */
export function TableHead({ columns }: { columns: readonly (readonly [title: string, classes?: string])[] }) {
  return (
    <thead>
      <tr>
        {columns.map(([title, classes]) => (
          <th key={title} scope="col" class={classes}>
            {title}
          </th>
        ))}
      </tr>
    </thead>
  );
}
