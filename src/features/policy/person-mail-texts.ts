import type { Subject } from '#engines/agent-links/owners.ts'
import { mailName } from '#engines/person-mails/mail-text.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import type { ApprovalDetail } from '#kernel/task/act-approval-request.ts'
import { approvalDetail } from '#kernel/task/approval.ts'
import { type AgentsRule, type Limits, usd, type Wanted } from './rules.ts'

type Named = Pick<Subject, 'agentId' | 'name' | 'linkedAt'>
/**
 * Names the account in a text for a person: `your account`, or the agent if the agent is linked or makes the request
 * itself. `caller` is the one who makes the request.
 */
export const whose = ({ agentId, name, linkedAt }: Named, caller?: Pick<Caller, 'person'>): string => {
  if (linkedAt === null && (!caller || caller.person)) return 'your account'
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

const detailNames: Record<keyof Limits, string> = {
  perTransactionMicros: 'One action',
  perDayMicros: '24 hours',
  chatPerDayMicros: 'Chats by themselves',
  chains: 'Chains',
  tokens: 'Tokens',
  recipients: 'Contracts that operations may pay',
  approvalAboveMicros: 'Agents ask you',
}
const sentenceOf = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`

/** Lists the raised limits for an approval, line by line, with each entry that is added to a list. */
export const raiseDetails = (fields: readonly (keyof Limits)[], change: Change): ApprovalDetail[] =>
  fields.flatMap((field) => {
    const { [field]: wanted } = change.wanted
    const before = change.before[field]
    const known: readonly string[] = Array.isArray(before) ? before : []
    const entries =
      Array.isArray(wanted) && field !== 'chains' ? wanted.filter((each) => !known.includes(each)) : []
    return [
      approvalDetail(detailNames[field], sentenceOf(textOf(field, change))),
      ...entries.map((value: string) => approvalDetail('Added', value)),
    ]
  })

export const raisedText = (subject: Named, fields: readonly (keyof Limits)[], change: Change): string =>
  `The limits of ${whose(subject)} were raised: ${fields.map((field) => textOf(field, change)).join('; ')}.`

export const resumedText = (subject: Named): string =>
  `The kill switch of ${whose(subject)} was lifted, so trading goes on.`

export const agentTexts: Record<AgentsRule, string> = {
  denied: 'Agents may not send to it.',
  approval: 'Agents may send to it with your approval.',
  allowed: 'Agents may send to it by themselves, within your limits.',
}

export const recipientText = (
  subject: Named,
  { address, label, chain, agents }: { address: string; label: string; chain: string; agents: AgentsRule },
): string =>
  `${address} on ${chain}, called “${mailName(label)}”, was added to the recipients of ${whose(subject)}. ${agentTexts[agents]}`
