import { readCredentials } from './credentials.ts'
import { hasGateway } from './gateway-commands.ts'
import { readSession } from './session-file.ts'
import type { Terminal } from './terminal.ts'

type Step = readonly [command: string, text: string]

const start: Step = hasGateway
  ? ['portico up', 'starts a gateway with a local world: no real money']
  : ['portico --base-url <url> ...', 'names your gateway; it is also read from PORTICO_URL']
const signIn: Step = ['portico init', 'makes a key for this machine; a person runs portico login']
const firstCall: Step = ['portico earn deposit --amount-usdc 5 --wait', 'moves the first money']

/** What `portico` alone prints. */
export function firstSteps(terminal: Terminal): string {
  const known = readSession(terminal)?.base_url ?? readCredentials(terminal)?.base_url
  const steps = [start, signIn, firstCall].map(
    ([command, text], at) => `  ${at + 1}  ${command}\n     ${text}\n`,
  )
  return `The first three steps:
${steps.join('')}
${known === undefined ? '' : `This machine is signed in at ${known}.\n`}Then: portico status, holdings, positions, price BTC, watch tasks, chat.
All commands: portico --help. The options of one: portico perp open --help.
`
}
