import { escapeHtml, shownName } from '#edges/oauth/pages.ts'
import {
  badgeOf,
  buttonForm,
  confirmed,
  rowOf,
  sectionOf,
  softLine,
  timeLeft,
  timeOf,
} from './account-html.ts'
import type { Holdings, PendingChange, Policy, Recipient } from './account-reader.ts'

export type LimitView = Holdings & {
  /** The linked agent whose limits are shown; absent for the account of the person itself. */
  agentId?: string
  now: Date
  chainName: (chainId: string) => string
}

const grouped = (usd: string): string => {
  const [whole = '0', fraction] = usd.split('.')
  return `${whole.replace(/\B(?=(\d{3})+$)/g, ',')}${fraction === undefined ? '' : `.${fraction.padEnd(2, '0')}`} USD`
}

function pauseText({ scope, since }: NonNullable<Policy['paused']>): string {
  const from = `Since ${timeOf(new Date(since))}`
  if (scope === 'global') return `${from}, by the operator of this gateway.`
  if (scope === 'person') return `${from}, by your own kill switch.`
  return `${from}. Closing positions, cancelling and withdrawing still work.`
}

export function tradingSection({ policy: { paused }, agentId }: LimitView): string {
  const fields = { agent_id: agentId }
  const what = agentId === undefined ? 'all trading' : 'trading of this agent'
  const change = () => {
    if (!paused)
      return confirmed(
        { act: 'Stop', what },
        agentId === undefined
          ? 'Nothing is bought, opened or sent any more, by you, your apps and your linked agents. Exits go on.'
          : 'This agent buys, opens and sends nothing any more. Exits go on.',
        buttonForm('stop', agentId === undefined ? 'Stop all trading' : 'Stop this agent', { fields }),
      )
    if (paused.scope !== 'user') return ''
    return confirmed(
      { act: 'Allow', what },
      'You confirm it on the next page. Then trading goes on within the limits below.',
      buttonForm('resume', 'Allow trading again', { fields, look: 'main' }),
    )
  }
  return `<section aria-labelledby="trading"><h2 id="trading">Trading</h2><ul class="rows">${rowOf({
    title: paused ? '<span class="stopped">Trading is stopped</span>' : 'Trading is allowed',
    lines: [softLine(paused ? pauseText(paused) : 'Within the limits below.')],
    action: change(),
  })}</ul></section>`
}

function chatText({ chat_per_day_usd: limit, chat_remaining_24h_usd: left }: Policy): string {
  if (limit === '0') return 'Start nothing by themselves'
  return `Start up to ${grouped(limit)} in 24 hours by themselves, ${grouped(left)} left`
}
function approvalText(above: string | null): string {
  if (above === null) return 'Never: agents act within the limits'
  return above === '0' ? 'About everything that has a value' : `Above ${grouped(above)}`
}
const listText = (list: readonly unknown[] | null, all: string, one: string): string => {
  if (list === null) return all
  return list.length === 1 ? `1 ${one}` : `${list.length} ${one}s`
}

function pendingText(change: PendingChange, { chainName }: LimitView): string {
  const { per_transaction_usd: perTransaction, per_day_usd: perDay, chat_per_day_usd: chats } = change
  const { chains, tokens, recipients } = change
  if (perTransaction !== undefined) return `One action: up to ${grouped(perTransaction)}`
  if (perDay !== undefined) return `24 hours: up to ${grouped(perDay)}`
  if (chats !== undefined) return `Chats by themselves: up to ${grouped(chats)} in 24 hours`
  if (chains) return `Chains: ${escapeHtml(chains.map(chainName).join(', '))}`
  if (tokens !== undefined) return `Tokens: ${listText(tokens, 'every token', 'token')}`
  if (recipients) return `Contracts that operations may pay: ${recipients.length}`
  return `Agents ask you: ${escapeHtml(approvalText(change.approval_above_usd ?? null)).toLowerCase()}`
}

const pendingRow = (change: PendingChange, view: LimitView): string => {
  const text = pendingText(change, view)
  const at = new Date(change.effective_at)
  return rowOf({
    title: text,
    badge: badgeOf('Waits'),
    lines: [softLine(`Takes effect ${timeLeft(at, view.now)}: ${timeOf(at)}`)],
    action: confirmed(
      { act: 'Cancel', what: change.field },
      'The limit stays as it is.',
      buttonForm('limit-cancel', 'Cancel this change', {
        fields: { change_id: change.change_id, agent_id: view.agentId },
      }),
    ),
  })
}

export function limitSection(view: LimitView): string {
  const { policy, chainName } = view
  const facts = [
    ['One action', `Up to ${grouped(policy.per_transaction_usd)}`],
    ['24 hours', `Up to ${grouped(policy.per_day_usd)}, ${grouped(policy.spent_24h_usd)} used`],
    ['Agents ask you', approvalText(policy.approval_above_usd)],
    ['Chats', chatText(policy)],
    ['Chains', policy.chains.length === 0 ? 'None' : policy.chains.map(chainName).join(', ')],
    ['Tokens', listText(policy.tokens, 'Every token', 'token')],
  ]
  const list = facts
    .map(([name, value]) => `<div><dt>${name}</dt><dd>${escapeHtml(value ?? '')}</dd></div>`)
    .join('')
  const pending = policy.pending_changes.map((change) => pendingRow(change, view)).join('')
  return `<section aria-labelledby="limits"><h2 id="limits">Limits</h2><dl class="who facts">${list}</dl>${
    pending && `<ul class="rows">${pending}</ul>`
  }</section>`
}

const agentTexts: Record<Recipient['agents'], string> = {
  denied: 'agents never send to it, and what an app sends waits for you',
  approval: 'agents send to it with your approval',
  allowed: 'agents send to it by themselves',
}

function recipientRow(recipient: Recipient, { agentId, now, chainName }: LimitView): string {
  const { recipient_id: id, label, address, chain_id: chainId, status, agents, effective_at } = recipient
  const name = shownName(label) || 'Without a name'
  const at = new Date(effective_at)
  const isPending = status === 'pending'
  return rowOf({
    title: escapeHtml(name),
    badge: isPending ? badgeOf('Waits') : '',
    lines: [
      `<span class="mono small">${escapeHtml(address)}</span>`,
      softLine(`${escapeHtml(chainName(chainId))} · ${agentTexts[agents]}`),
      ...(isPending ? [softLine(`Counts ${timeLeft(at, now)}: ${timeOf(at)}`)] : []),
    ],
    action: confirmed(
      { act: 'Remove', what: name },
      'Nothing is sent to it any more. Adding it again takes its time anew.',
      buttonForm('recipient-remove', 'Remove this recipient', {
        fields: { recipient_id: id, agent_id: agentId },
      }),
    ),
  })
}

export const recipientSection = (view: LimitView): string =>
  sectionOf({
    id: 'recipients',
    title: 'Recipients',
    rows: view.recipients.map((each) => recipientRow(each, view)),
    empty:
      view.agentId === undefined
        ? 'Nothing can be sent from your wallets to anybody else. An app that you allow to propose asks for a recipient, and you confirm its address here.'
        : 'This agent can send nothing to anybody else.',
  })
