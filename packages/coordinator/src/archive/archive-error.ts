/** Why an archive can't be read: the one error of this folder. The command tells its code. */
export class ArchiveError extends Error {
  override readonly name = "ArchiveError";
  readonly code = "archive_unreadable";
}
