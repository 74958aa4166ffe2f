import { escapeHtml } from '#edges/oauth/pages.ts'
import { printed } from '#kernel/money/figure-format.ts'
import { fromUnits, toFixedPoint } from '#kernel/money/money.ts'
import { badgeOf, dollars, rowOf, sectionOf, softLine, timeOf } from './account-html.ts'
import type { DoneTask, Money, Wallet } from './account-reader.ts'

/** The parts of the account page about money: what is there, where it is paid in, and what was done with it. */

const rowsMax = 8

const shownAmount = (amount: string): string => printed(amount, 'amount') ?? amount

const placeText = ({ kind, protocol, chain_name: chain }: Money['holdings'][number]): string => {
  if (kind === 'earn_share') return `In the vault, on ${chain}`
  return protocol === null ? `On ${chain}` : `At the prediction market, on ${chain}`
}

/** The most valuable first; what has no known price is last, in its order. */
const byWorth = (holdings: Money['holdings']): Money['holdings'] =>
  holdings.toSorted((one, other) => {
    const difference = toFixedPoint(other.value_usd ?? '0') - toFixedPoint(one.value_usd ?? '0')
    return difference === 0n ? 0 : difference > 0n ? 1 : -1
  })

const factOf = (name: string, value: string): string =>
  `<div><dt>${name}</dt><dd>${escapeHtml(value)}</dd></div>`

/** `money` is absent if it could not be read. */
export function moneySection(money: Money | undefined): string {
  const title = 'Money'
  if (!money)
    return sectionOf({
      id: 'money',
      title,
      rows: [],
      empty: 'Your balances cannot be shown now. Open the page again.',
    })
  const { holdings, total_value_usd: total, isComplete, perp, spot } = money
  const facts = [
    factOf(
      'Wallets and vault',
      `${dollars(total)}${isComplete ? '' : ', as far as chains answer and prices are known'}`,
    ),
    ...(perp
      ? [
          factOf(
            'Perpetuals',
            `${dollars(perp.account_value_usd)}, ${dollars(perp.withdrawable_usd)} of it free`,
          ),
        ]
      : []),
    ...(spot.length === 0
      ? []
      : [
          factOf(
            'Spot account',
            spot.map(({ asset, total: held }) => `${shownAmount(held)} ${asset}`).join(', '),
          ),
        ]),
  ]
  const worth = (value: string | null) => (value === null ? 'no known price' : dollars(value))
  const rows = byWorth(holdings).map((held) =>
    rowOf({
      title: escapeHtml(`${shownAmount(held.balance)} ${held.symbol}`),
      lines: [softLine(`${escapeHtml(placeText(held))} · ${worth(held.value_usd)}`)],
    }),
  )
  const more = rows.slice(rowsMax)
  return sectionOf({
    id: 'money',
    title,
    rows: rows.slice(0, rowsMax),
    before: `<dl class="who facts">${facts.join('')}</dl>`,
    empty: 'Your wallets are empty. The addresses below are yours.',
    after:
      more.length === 0
        ? ''
        : `<details class="below"><summary>And ${more.length} more</summary><ul class="rows">${more.join('')}</ul></details>`,
  })
}

type PayIn = { wallets: readonly Wallet[]; chainName: (chainId: string) => string; isLocal: boolean }
export const payInSection = ({ wallets, chainName, isLocal }: PayIn): string =>
  sectionOf({
    id: 'pay-in',
    title: 'Pay in',
    rows: wallets.map(({ address, supported_chain_ids: chainIds }) =>
      rowOf({
        title: `<span class="mono">${escapeHtml(address)}</span>`,
        lines: [softLine(`On ${escapeHtml(chainIds.map(chainName).join(', '))}`)],
      }),
    ),
    empty: 'Your wallets are being made. Open the page again in a moment.',
    after: `<p class="small soft below">${
      isLocal
        ? 'This gateway runs a local world: nothing here is worth anything, and money of real chains sent to these addresses is lost.'
        : 'Send on these chains alone: what arrives on another one is not shown.'
    }</p>`,
  })

const signed = (units: string, decimals: number): string => {
  const amount = fromUnits(BigInt(units), decimals)
  return `${amount.startsWith('-') ? '' : '+'}${shownAmount(amount)}`
}
const changesOf = ({ balance_changes: changes }: DoneTask): string =>
  changes.map(({ amount, decimals, symbol }) => `${signed(amount, decimals)} ${symbol}`).join(', ')

const kindText = (kind: string): string => {
  const words = kind.replaceAll('_', ' ')
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`
}
const endBadge = ({ status, outcome, state }: DoneTask): string => {
  if (status === 'completed') return outcome === 'partial' ? badgeOf('In part') : ''
  if (state === 'awaiting_approval') return badgeOf('Waits for you')
  return badgeOf({ failed: 'Failed', cancelled: 'Cancelled' }[status] ?? 'Runs')
}

type Activity = {
  tasks: readonly DoneTask[]
  /** Names who asked for a task, as HTML. */
  askerOf: (task: DoneTask) => string
  empty: string
}
export const activitySection = ({ tasks, askerOf, empty }: Activity): string =>
  sectionOf({
    id: 'activity',
    title: 'Latest acts',
    rows: tasks.map((task) =>
      rowOf({
        title: escapeHtml(kindText(task.kind)),
        badge: endBadge(task),
        lines: [
          ...(task.balance_changes.length > 0
            ? [`<span class="small">${escapeHtml(changesOf(task))}</span>`]
            : []),
          softLine(`${askerOf(task)} · ${timeOf(new Date(task.created_at))}`),
        ],
      }),
    ),
    empty,
  })
