import { CommanderError, Option, Command as Program } from 'commander'
import { errorText } from './answer-text.ts'
import { callOperation } from './call-operation.ts'
import { chat } from './chat.ts'
import { type Command, commands, type Field } from './commands.ts'
import { candidates, completionScript, shells } from './completion.ts'
import { exitCodeOf, exitCodes } from './exit-codes.ts'
import { admin, agent, hasGateway, packageVersion, up } from './gateway-commands.ts'
import { init } from './init.ts'
import { link } from './link-agent.ts'
import { login, logout } from './login.ts'
import { mcpBridge } from './mcp-bridge.ts'
import type { Options } from './operation-input.ts'
import { type Terminal, UsageError } from './terminal.ts'
import { watchHoldings, watchTasks } from './watch.ts'

export async function runCli(words: readonly string[], terminal: Terminal): Promise<number> {
  let code: number = exitCodes.success
  const program = programOf(terminal, (ended) => {
    code = ended
  })
  try {
    await program.parseAsync(words, { from: 'user' })
    return code
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.success : exitCodes.usage
    if (terminal.signal.aborted) return exitCodes.success
    const form = words.includes('--jsonl') ? 'jsonl' : words.includes('--json') ? 'json' : 'table'
    terminal.err(errorText(error, form))
    return exitCodeOf(error)
  }
}

type End = (code: number) => void

function programOf(terminal: Terminal, end: End): Program {
  const program = new Program('portico')
    .description('Trade and research through a Portico gateway')
    .exitOverride()
    .configureOutput({ writeOut: terminal.out, writeErr: terminal.err })
    .enablePositionalOptions()
  if (packageVersion !== undefined) program.version(packageVersion, '--version', 'print the version')
  for (const [group, ofGroup = []] of Object.entries(Object.groupBy(commands, (each) => each.group))) {
    const section = program.command(group).description(`Operations of ${group}`)
    for (const command of ofGroup) addOperation(section, command, terminal, end)
    if (group === 'chat') addChat(section, terminal, end)
  }
  addBuiltins(program, terminal, end)
  return program
}

function addOperation(section: Program, command: Command, terminal: Terminal, end: End): void {
  const verb = section
    .command(command.verb)
    .summary(command.summary)
    .description(`${command.summary}.\n\n${command.description}`)
  for (const { name, isPath, description } of command.fields)
    if (isPath) verb.argument(`[${name}]`, description)
  for (const field of command.fields) if (!field.isPath) verb.addOption(optionOf(field))
  if (command.waitSeconds !== undefined) {
    verb.option('--wait', 'wait until the task has ended')
    if (!command.fields.some(({ flag }) => flag === 'timeout'))
      verb.option(
        '--timeout <seconds>',
        `how long --wait waits, from 5 to 90 (default ${command.waitSeconds})`,
      )
  }
  if (command.isStream) verb.option('--items <count>', 'end after this many events')
  addOutput(verb).option('--idempotency-key <key>', 'repeat a call under the key of the first one')
  verb.action(async () => {
    end(await callOperation(terminal, { command, options: verb.opts<Options>(), positional: verb.args }))
  })
}

function addChat(section: Program, terminal: Terminal, end: End): void {
  section
    .summary('Ask in plain words')
    .argument('[question...]', 'the question')
    .option('--thread <id>', 'continue this thread')
    .option('--agent <name>', 'who answers')
  addOutput(section).action(async (question: string[]) => {
    end(await chat(terminal, section.opts<Options>(), question))
  })
}

/**
 * Help and completion show the values that an option allows. The command line does not check the value, because the
 * gateway checks every option.
 */
function optionOf({ flag, type, choices, isList, description }: Field): Option {
  const value = type === 'boolean' ? '[true|false]' : `<${type}${isList ? '...' : ''}>`
  const shown = choices.length > 0 ? ` (${choices.join(', ')})` : ''
  const option = new Option(`--${flag} ${value}`, `${description}${isList ? ', repeatable' : ''}${shown}`)
  return type === 'boolean' ? option.preset(true) : option
}

const addOutput = (verb: Program): Program =>
  verb
    .option('--json [input]', 'print JSON; with @file, @- or an object also read the input from it')
    .option('--jsonl', 'print JSON, one line per item')
    .option('--base-url <url>', 'address of the gateway (PORTICO_URL)')
    .option('--retries <count>', 'repeats after lost connections and overload (default 2)')

function addBuiltins(program: Program, terminal: Terminal, end: End): void {
  const first = program.command('init').description('Make a key pair, register it and store it')
  first.option('--base-url <url>', 'address of the gateway (PORTICO_URL)')
  first.option('--name <text>', 'a name of the agent for people').option('--force', 'replace the stored key')
  first.action(() => init(terminal, first.opts<Options>()))

  const person = program.command('login').description('Sign in as a person, with a browser')
  person.option('--base-url <url>', 'address of the gateway (PORTICO_URL)')
  person.option('--no-browser', 'print the address, and open no browser')
  person.action(() => login(terminal, person.opts<Options>()))
  program
    .command('logout')
    .description('Revoke the tokens of portico login and remove them')
    .action(() => logout(terminal))

  program
    .command('link')
    .description('Show the code by which a person links this agent')
    .option('--base-url <url>', 'address of the gateway (PORTICO_URL)')
    .action((options: Options) => link(terminal, options))

  program
    .command('mcp')
    .description('Serve MCP on standard input and output, with the stored key or sign-in')
    .option('--base-url <url>', 'address of the gateway (PORTICO_URL)')
    .option('--sections <names>', 'the tools of these sections, with commas between; all for every one')
    .option('--mode <mode>', 'read: only tools that move nothing')
    .action(async (options: Options) => end(await mcpBridge(terminal, options)))

  const watch = program.command('watch').description('Follow what changes')
  for (const [name, run, text] of [
    ['tasks', watchTasks, 'every change of a task'],
    ['holdings', watchHoldings, 'the holdings whenever they change'],
  ] as const) {
    const verb = addOutput(watch.command(name).description(text)).option(
      '--items <count>',
      'end after this many',
    )
    if (name === 'holdings') verb.option('--interval <seconds>', 'how often to look (default 5)')
    verb.action(async () => end(await run(terminal, verb.opts<Options>())))
  }

  const builtins = [
    'init',
    'link',
    'login',
    'logout',
    'mcp',
    'watch',
    'completion',
    ...(hasGateway ? ['up', 'agent', 'admin'] : []),
  ]
  program
    .command('completion')
    .description('Print the completion script of a shell')
    .argument('<shell>', shells.join(' or '))
    .action((shell: string) => {
      const known = shells.find((each) => each === shell)
      if (!known) throw new UsageError(`There is a script for ${shells.join(' and ')}, not for ${shell}`)
      terminal.out(completionScript(known))
    })
  program
    .command('complete', { hidden: true })
    .argument('[words...]')
    .action((words: string[]) => {
      for (const word of candidates(words, commands, builtins)) terminal.out(`${word}\n`)
    })
  if (!hasGateway) return
  program
    .command('up')
    .description('Start the gateway with its world, as npm start does')
    .action(async () => end(await up()))
  program
    .command('agent')
    .description('Start the agent service, which answers chats for gateways (AGENT_KEY, AGENT_PORT)')
    .action(async () => end(await agent()))
  program
    .command('admin')
    .description('The commands of the operator, on the database of the gateway')
    .argument('[words...]')
    .passThroughOptions()
    .allowUnknownOption()
    .helpOption(false)
    .action(async (words: string[]) => end(await admin(words)))
}
