import { CommanderError, Command as Program } from 'commander'
import { addBuiltins } from './builtin-commands.ts'
import { chat } from './chat.ts'
import { isQuestion } from './chat-question.ts'
import { type Command, commands } from './commands.ts'
import { errorText, fitted, usageText } from './error-text.ts'
import { exitCodeOf, exitCodes } from './exit-codes.ts'
import { firstSteps } from './first-steps.ts'
import { packageVersion } from './gateway-commands.ts'
import { addGlobalOptions, type Chosen, optionsOf } from './global-options.ts'
import { addOperation } from './operation-command.ts'
import { formOfWords } from './output-form.ts'
import type { Terminal } from './terminal.ts'

export async function runCli(words: readonly string[], terminal: Terminal): Promise<number> {
  if (words.length === 0) {
    terminal.out(firstSteps(terminal))
    return exitCodes.success
  }
  const chosen: Chosen = { code: exitCodes.success }
  const program = programOf(terminal, words, chosen)
  try {
    await program.parseAsync(words, { from: 'user' })
    return chosen.code
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.success : exitCodes.usage
    if (terminal.signal.aborted) return exitCodes.success
    terminal.err(fitted(errorText(error, formOfWords(words), chosen.command), terminal))
    return exitCodeOf(error)
  }
}

/** Narrower help would have more lines than words. */
const helpWidthMin = 10

function programOf(terminal: Terminal, words: readonly string[], chosen: Chosen): Program {
  const program = new Program('portico')
    .description('Trade and research through a Portico gateway')
    .exitOverride()
    .configureOutput({
      writeOut: terminal.out,
      writeErr: terminal.err,
      outputError: (text, write) => write(fitted(usageText(text, formOfWords(words)), terminal)),
      ...(terminal.width !== undefined && { getOutHelpWidth: () => terminal.width! }),
    })
    .configureHelp({ minWidthToWrap: helpWidthMin })
    .enablePositionalOptions()
  if (packageVersion !== undefined) program.version(packageVersion, '--version', 'print the version')
  addGlobalOptions(program, '--json')
  addBuiltins(program, terminal, chosen)
  program.commandsGroup('Sections:')
  const asksInWords = isQuestion(words)
  for (const [group, { about, ofGroup }] of sections()) {
    const section = program.command(group).description(about)
    addGlobalOptions(section, '--json')
    const isAsked = group === 'chat' && asksInWords
    for (const command of isAsked ? [] : ofGroup) addOperation(section, command, terminal, chosen)
    if (group === 'chat') addChat(section, terminal, chosen)
  }
  return program
}

function sections(): Map<string, { about: string; ofGroup: Command[] }> {
  const found = new Map<string, { about: string; ofGroup: Command[] }>()
  for (const command of commands) {
    const section = found.get(command.group) ?? { about: command.about, ofGroup: [] }
    section.ofGroup.push(command)
    found.set(command.group, section)
  }
  return found
}

function addChat(section: Program, terminal: Terminal, chosen: Chosen): void {
  section
    .argument('[question...]', 'the question; without one a dialogue begins')
    .option('--thread <id>', 'continue this thread')
    .option('--agent <name>', 'who answers: ProAgent, MarketAnalyzerAgent or ProDeepResearchAgent')
    .action(async (question: string[]) => {
      chosen.code = await chat(terminal, optionsOf(section), question)
    })
}
