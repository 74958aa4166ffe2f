import type { Subject } from '#engines/agent-links/owners.ts'
import { mailName } from '#engines/person-mails/mail-text.ts'
import type { AgentsRule, Limits, Wanted } from './rules.ts'
import { usd } from './rules.ts'

/** What a person reads in a message about limits, the kill switch and recipients. */

type Named = Pick<Subject, 'agentId' | 'name' | 'linkedAt'>
const whose = ({ agentId, name, linkedAt }: Named): string => {
  if (linkedAt === null) return 'your account'
  const shown = mailName(name ?? '')
  return shown === '' ? `the agent ${agentId}` : `the agent “${shown}” (${agentId})`
}

const added = (before: readonly string[] | null, after: readonly string[]): number =>
  after.filter((each) => before?.includes(each) === false).length

type Change = { before: Limits; wanted: Wanted; chainName: (chainId: string) => string }

const fieldTexts: { [K in keyof Limits]: (value: Limits[K], before: Limits[K], change: Change) => string } = {
  perTransactionMicros: (value, before) =>
    `one action may cost up to ${usd(value)} USD instead of ${usd(before)} USD`,
  perDayMicros: (value, before) => `24 hours may cost up to ${usd(value)} USD instead of ${usd(before)} USD`,
  chatPerDayMicros: (value, before) =>
    `chats may start up to ${usd(value)} USD by themselves in 24 hours instead of ${usd(before)} USD`,
  chains: (value, before, { chainName }) =>
    `these chains become allowed: ${value
      .filter((each) => !before.includes(each))
      .map(chainName)
      .join(', ')}`,
  tokens: (value, before) =>
    value === null
      ? 'every token becomes allowed'
      : `the list of allowed tokens grows by ${added(before, value)} to ${value.length}`,
  recipients: (value, before) =>
    `the list of contracts that operations may pay grows by ${added(before, value)} to ${value.length}`,
  approvalAboveMicros: (value, before) =>
    value === null
      ? 'no request of an agent waits for your approval any more'
      : `requests of agents wait for your approval above ${usd(value)} USD instead of above ${usd(before ?? 0n)} USD`,
}

const textOf = <K extends keyof Limits>(field: K, change: Change): string =>
  fieldTexts[field](change.wanted[field] as Limits[K], change.before[field], change)

export const raisedText = (subject: Named, fields: readonly (keyof Limits)[], change: Change): string =>
  `The limits of ${whose(subject)} were raised: ${fields.map((field) => textOf(field, change)).join('; ')}.`

export const resumedText = (subject: Named): string =>
  `The kill switch of ${whose(subject)} was lifted, so trading goes on.`

const agentTexts: Record<AgentsRule, string> = {
  denied: 'Agents may not send to it.',
  approval: 'Agents may send to it with your approval.',
  allowed: 'Agents may send to it by themselves, within your limits.',
}

export const recipientText = (
  subject: Named,
  { address, label, chain, agents }: { address: string; label: string; chain: string; agents: AgentsRule },
): string =>
  `${address} on ${chain}, called “${mailName(label)}”, was added to the recipients of ${whose(subject)}. ${agentTexts[agents]}`
