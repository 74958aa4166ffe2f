import { tokenCommands } from './access-tokens.ts'
import { taskPaymentCommands } from './add-found-payment.ts'
import { agentCommands } from './agents.ts'
import { approvalCommands } from './approvals.ts'
import { usageLine } from './arguments.ts'
import { backendKeyCommands } from './backend-keys.ts'
import { backupCommands } from './backup-and-restore.ts'
import type { AdminCommand } from './command.ts'
import { creditCommands } from './credits.ts'
import { earnAccountCommands } from './earn-accounts.ts'
import { keyCommands } from './key-encryption-keys.ts'
import { logCommands } from './list-actions.ts'
import { timeCommands } from './money-holds.ts'
import { psqlCommands } from './psql.ts'
import { sponsorCommands } from './sponsors.ts'
import { strayPaymentCommands } from './stray-payments.ts'
import { taskCommands } from './tasks.ts'
import { userCommands } from './users.ts'
import { accountCommands } from './venue-accounts.ts'

export const commands: readonly AdminCommand[] = [
  ...taskCommands,
  ...taskPaymentCommands,
  ...accountCommands,
  ...earnAccountCommands,
  ...strayPaymentCommands,
  ...creditCommands,
  ...userCommands,
  ...tokenCommands,
  ...agentCommands,
  ...approvalCommands,
  ...backendKeyCommands,
  ...keyCommands,
  ...sponsorCommands,
  ...backupCommands,
  ...timeCommands,
  ...psqlCommands,
  ...logCommands,
]

export function helpLines(): string[] {
  const lines = commands.flatMap((command) => [`  ${usageLine(command)}`, `      ${command.summary}`])
  return [
    'Usage: npm run admin -- <command> [--by <name>] [--why <reason>] [--json]',
    '',
    'Works on the configured database, also while gateways run. Every use is recorded; a command that changes',
    'something requires --why. --by names the operator; without it, the account of the operating system does.',
    '',
    ...lines,
  ]
}
