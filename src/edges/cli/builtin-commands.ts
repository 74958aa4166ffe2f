import type { Command as Program } from 'commander'
import { commands } from './commands.ts'
import { candidates, completionScript, shells } from './completion.ts'
import { admin, agent, hasGateway, up } from './gateway-commands.ts'
import { addGlobalOptions, type Chosen, optionsOf } from './global-options.ts'
import { init } from './init.ts'
import { link } from './link-agent.ts'
import { login, logout } from './login.ts'
import { mcpBridge } from './mcp-bridge.ts'
import type { Options } from './operation-input.ts'
import { holdings, positions, price } from './people-commands.ts'
import { status } from './status-command.ts'
import { type Terminal, UsageError } from './terminal.ts'
import { watchHoldings, watchTasks } from './watch.ts'

/** The commands that are no operations of the gateway. */
export function addBuiltins(program: Program, terminal: Terminal, chosen: Chosen): void {
  program.commandsGroup('First steps:')
  if (hasGateway) addUp(program, chosen)
  addSignIn(program, terminal)
  program.commandsGroup('Every day:')
  addOverviews(program, terminal, chosen)
  addWatch(program, terminal, chosen)
  program.commandsGroup('For this machine:')
  addMcp(program, terminal, chosen)
  addCompletion(program, terminal)
  program.commandsGroup('For operators:')
  if (hasGateway) addOperatorCommands(program, chosen)
}

const addUrl = (command: Program): Program =>
  command.option('--base-url <url>', 'address of the gateway (PORTICO_URL)')

function addSignIn(program: Program, terminal: Terminal): void {
  const first = addUrl(program.command('init').description('Make a key pair, register it and store it'))
  first.option('--name <text>', 'a name of the agent for people').option('--force', 'replace the stored key')
  first.action(() => init(terminal, optionsOf(first)))

  const person = addUrl(program.command('login').description('Sign in as a person, with a browser'))
  person.option('--no-browser', 'print the address, and open no browser')
  person.action(() => login(terminal, optionsOf(person)))
  program
    .command('logout')
    .description('Revoke the tokens of portico login and remove them')
    .action(() => logout(terminal))

  const linked = addUrl(
    program.command('link').description('Show the code by which a person links this agent'),
  )
  linked.action(() => link(terminal, optionsOf(linked)))
}

type Overview = (terminal: Terminal, options: Options, words: readonly string[]) => Promise<number>
const overviews: readonly (readonly [name: string, run: Overview, text: string])[] = [
  ['status', status, 'Who you are, what you own, what runs, and your limits'],
  ['holdings', holdings, 'What you own, in the wallets and at the venues, with its worth'],
  ['positions', positions, 'What is open: perpetuals, spot, predictions, the vault, and waiting orders'],
  ['price', price, 'Prices of markets: portico price BTC ETH'],
]

function addOverviews(program: Program, terminal: Terminal, chosen: Chosen): void {
  for (const [name, run, text] of overviews) {
    const command = addGlobalOptions(program.command(name).description(text), '--json')
    if (name === 'price') command.argument('[asset...]', 'symbols; without one the largest markets')
    command.action(async () => {
      chosen.code = await run(terminal, optionsOf(command), command.args)
    })
  }
}

function addWatch(program: Program, terminal: Terminal, chosen: Chosen): void {
  const watch = program.command('watch').description('Follow what changes')
  addGlobalOptions(watch, '--json')
  for (const [name, run, text] of [
    ['tasks', watchTasks, 'what happens to your tasks, from now on'],
    ['holdings', watchHoldings, 'the holdings whenever they change'],
  ] as const) {
    const verb = addGlobalOptions(watch.command(name).description(text), '--json')
    verb.option('--items <count>', 'end after this many')
    if (name === 'holdings') verb.option('--interval <seconds>', 'how often to look (default 5)')
    else verb.option('--after <number>', 'begin after this event; 0 for all that are stored')
    verb.action(async () => {
      chosen.code = await run(terminal, optionsOf(verb))
    })
  }
}

function addMcp(program: Program, terminal: Terminal, chosen: Chosen): void {
  const bridge = addUrl(
    program
      .command('mcp')
      .description('Serve MCP on standard input and output, with the stored key or sign-in'),
  )
  bridge
    .option('--sections <names>', 'the tools of these sections, with commas between; all for every one')
    .option('--mode <mode>', 'read: only tools that move nothing')
    .action(async () => {
      chosen.code = await mcpBridge(terminal, optionsOf(bridge))
    })
}

function addCompletion(program: Program, terminal: Terminal): void {
  program
    .command('completion')
    .description('Print the completion script of a shell')
    .argument('<shell>', shells.join(', '))
    .action((shell: string) => {
      const known = shells.find((each) => each === shell)
      if (!known) throw new UsageError(`There is a script for ${shells.join(', ')}, not for ${shell}`)
      terminal.out(completionScript(known))
    })
  program
    .command('complete', { hidden: true })
    .argument('[words...]')
    .action((words: string[]) => {
      for (const word of candidates(words, commands, program)) terminal.out(`${word}\n`)
    })
}

function addUp(program: Program, chosen: Chosen): void {
  program
    .command('up')
    .description('Start the gateway with its world, as npm start does')
    .action(async () => {
      chosen.code = await up()
    })
}

function addOperatorCommands(program: Program, chosen: Chosen): void {
  program
    .command('agent')
    .description('Start the agent service, which answers chats for gateways (AGENT_KEY, AGENT_PORT)')
    .action(async () => {
      chosen.code = await agent()
    })
  program
    .command('admin')
    .description('The commands of the operator, on the database of the gateway')
    .argument('[words...]')
    .passThroughOptions()
    .allowUnknownOption()
    .helpOption(false)
    .action(async (words: string[]) => {
      chosen.code = await admin(words)
    })
}
