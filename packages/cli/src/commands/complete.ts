/** `complete`: the script by which a shell completes commands and options. `complete -- WORDS` is what the script asks. */
import { Argument, Command } from "commander";
import { completionScript, SHELLS, type Shell } from "../completion.js";
import { printJson, printPainted } from "../output.js";

export function makeCommand(): Command {
  return new Command("complete")
    .description(
      "Prints a script that completes commands, options and their values in your shell. Let the shell read it at its start. For bash, the " +
        "package bash-completion must be installed.",
    )
    .addArgument(new Argument("<shell>", "your shell").choices(SHELLS))
    .addHelpText(
      "after",
      "\nExamples:\n  $ source <(callnumber complete bash)        in ~/.bashrc\n  $ source <(callnumber complete zsh)         in ~/.zshrc, after compinit" +
        "\n  $ callnumber complete fish > ~/.config/fish/completions/callnumber.fish",
    )
    .action((shell: Shell, { json }: { readonly json?: boolean }) => {
      const script = completionScript(shell);
      if (json) printJson({ shell, script });
      else printPainted(script.trimEnd());
    });
}
