import { escapeHtml } from '#edges/oauth/pages.ts'
import { printed } from '#kernel/money/figure-format.ts'
import { fromUnits, toFixedPoint } from '#kernel/money/money.ts'
import { badgeOf, dollars, rowOf, sectionOf, softLine, timeOf, timeText } from './account-html.ts'
import type { DoneTask, Money, SpotCoins, Wallet } from './account-reader.ts'

/** The parts of the account page about money: what is there, where it is paid in, and what was done with it. */

const rowsMax = 8

const shownAmount = (amount: string): string => printed(amount, 'amount') ?? amount

type Held = Money['holdings'][number]
const isAtMarket = ({ kind, protocol }: Held): boolean => kind !== 'earn_share' && protocol !== null

const placeText = (held: Held): string => {
  if (held.kind === 'earn_share') return `In the vault, on ${held.chain_name}`
  return isAtMarket(held) ? `At the prediction market, on ${held.chain_name}` : `On ${held.chain_name}`
}

/** The most valuable first; what has no known price is last, in its order. */
const byWorth = (holdings: Money['holdings']): Money['holdings'] =>
  holdings.toSorted((one, other) => {
    const difference = toFixedPoint(other.value_usd ?? '0') - toFixedPoint(one.value_usd ?? '0')
    return difference === 0n ? 0 : difference > 0n ? 1 : -1
  })

const factOf = (name: string, value: string): string =>
  `<div><dt>${name}</dt><dd>${escapeHtml(value)}</dd></div>`

const notCounted = 'did not answer; what is there is not counted'

const listed = (names: readonly string[]): string =>
  names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`

type ChainName = (chainId: string) => string
type Gap = { name: string; text: string; isEarlier: boolean }

/** The places that did not answer: each is left out of the sum, or counts as it was read before. */
function gapsOf({ chains, errors, holdings }: Money, chainName: ChainName): Gap[] {
  const gaps = chains.flatMap(({ chain_id, status, as_of }): Gap[] => {
    const name = chainName(chain_id)
    if (status === 'ok') return []
    if (status === 'failed' || as_of === null)
      return [{ name, text: `The chain ${notCounted}`, isEarlier: false }]
    const text = `The chain did not answer; what counts is what was there on ${timeText(new Date(as_of))}`
    return [{ name, text, isEarlier: true }]
  })
  if (!errors.some(({ source }) => source === 'prediction_market')) return gaps
  const isEarlier = holdings.some(isAtMarket)
  const earlier = 'did not answer; what counts is what it showed before'
  return [
    ...gaps,
    { name: 'Predictions', text: `The venue or its chain ${isEarlier ? earlier : notCounted}`, isEarlier },
  ]
}

/** The sum, with what it lacks. */
function sumText({ total_value_usd: total, holdings }: Money, gaps: readonly Gap[]): string {
  const namesOf = (some: readonly Gap[]) => listed(some.map(({ name }) => name))
  const missing = namesOf(gaps.filter(({ isEarlier }) => !isEarlier))
  const earlier = namesOf(gaps.filter(({ isEarlier }) => isEarlier))
  return [
    dollars(total),
    ...(missing ? [`without ${missing}`] : []),
    ...(earlier ? [`with earlier figures of ${earlier}`] : []),
    ...(holdings.some(({ value_usd }) => value_usd === null) ? ['without what has no known price'] : []),
  ].join(', ')
}

function venueFacts({ perp, spot }: Money): string[] {
  const unanswered = `The venue ${notCounted}`
  const coins = (held: SpotCoins) =>
    held.map(({ asset, total }) => `${shownAmount(total)} ${asset}`).join(', ')
  return [
    ...(perp === undefined
      ? []
      : [
          factOf(
            'Perpetuals',
            perp === 'unanswered'
              ? unanswered
              : `${dollars(perp.answer.account_value_usd)}, ${dollars(perp.answer.withdrawable_usd)} of it free`,
          ),
        ]),
    ...(spot === undefined || (spot !== 'unanswered' && spot.answer.length === 0)
      ? []
      : [factOf('Spot account', spot === 'unanswered' ? unanswered : coins(spot.answer))]),
  ]
}

/** `money` is absent if it could not be read. */
export function moneySection(money: Money | undefined, chainName: ChainName): string {
  const title = 'Money'
  if (!money)
    return sectionOf({
      id: 'money',
      title,
      rows: [],
      empty: 'Your balances cannot be shown now. Open the page again.',
    })
  const gaps = gapsOf(money, chainName)
  const facts = [
    factOf('Wallets and vault', sumText(money, gaps)),
    ...gaps.map(({ name, text }) => factOf(escapeHtml(name), text)),
    ...venueFacts(money),
  ]
  const worth = (value: string | null) => (value === null ? 'no known price' : dollars(value))
  const rows = byWorth(money.holdings).map((held) =>
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
    empty:
      gaps.length === 0
        ? 'Your wallets are empty. The addresses below are yours.'
        : 'Nothing is there as far as your wallets could be read.',
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
