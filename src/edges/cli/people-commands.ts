import { figureFormulas } from '#kernel/money/figure-format.ts'
import { addDecimals } from '#kernel/money/money.ts'
import type { Portico } from '#sdk/client.ts'
import { chainNames, clientOf } from './call-operation.ts'
import { type ChainNames, usdText } from './cell-text.ts'
import type { Options } from './operation-input.ts'
import {
  attempt,
  failures,
  hasFailed,
  isMoney,
  joined,
  notes,
  partViewOf,
  readVenues,
  type Section,
  screenWidth,
  show,
  type Venues,
  venueWorth,
  viewsByName,
} from './people-screen.ts'
import { type Fact, factLines, listLines } from './screen.ts'
import { wrapped } from './table-text.ts'
import type { Terminal } from './terminal.ts'
import type { View } from './view.ts'

/**
 * The few commands that put several operations on one screen: what a person asks first. `--json` prints the answers of
 * the operations by their names.
 */

/** `portico holdings`: every coin in the wallets, what lies at the venues, and the sum. */
export async function holdings(terminal: Terminal, options: Options): Promise<number> {
  const { signal } = terminal
  const client = clientOf(terminal, options)
  const [wallets_holdings, venues] = await Promise.all([
    client.wallets.holdings({}, { signal }),
    readVenues(client, signal),
  ])
  const answers = { wallets_holdings, ...venues }
  return show({ terminal, options, answers }, () => holdingsLines(answers, screenWidth(terminal)))
}

function holdingsLines(
  {
    wallets_holdings,
    ...venues
  }: Venues & { wallets_holdings: Awaited<ReturnType<Portico['wallets']['holdings']>> },
  width: number,
): string[] {
  const { holdings: rows, total_value_usd, complete, errors } = wallets_holdings
  const owned = rows.filter(({ amount }) => amount !== '0')
  const { perps, spot } = venueWorth(venues)
  const total = [perps, spot].filter(isMoney).reduce(addDecimals, total_value_usd)
  const facts: Fact[] = [
    ...(isMoney(perps) || isMoney(spot) ? [['wallets', usdText(total_value_usd)] as const] : []),
    ...(isMoney(perps) ? [['perpetuals', usdText(perps)] as const] : []),
    ...(isMoney(spot) ? [['spot venue', usdText(spot)] as const] : []),
    ['total', usdText(total)],
  ]
  const places = Math.max(...facts.map(([, text]) => text.length))
  const sums = facts.map(([name, text]) => [name, text.padStart(places)] as const)
  return joined([
    [
      '',
      owned.length === 0
        ? ['the wallets are empty']
        : listLines(owned, { view: partViewOf('wallets_holdings', 'holdings'), width, chains: new Map() }),
    ],
    ['', factLines(sums, width)],
    ...(complete
      ? []
      : [
          [
            '',
            wrapped('Not every coin has a price, or not every chain answered: --wide shows which', width),
          ] as const,
        ]),
    ...notes([...errors.map(({ message }) => message), ...failures(venues, width)], width),
  ])
}

/** `portico positions`: everything that gains or loses, and every order that waits. */
export async function positions(terminal: Terminal, options: Options): Promise<number> {
  const call = { signal: terminal.signal }
  const client = clientOf(terminal, options)
  const [venues, earn_positions, predmkt_positions, predmkt_open_orders, limit_orders_list, chains] =
    await Promise.all([
      readVenues(client, terminal.signal),
      attempt(client.earn.positions({}, call)),
      attempt(client.predmkt.positions({}, call)),
      attempt(client.predmkt.openOrders({}, call)),
      attempt(client.limitOrders.list({ status: 'active' }, call)),
      chainNames(client, terminal.signal),
    ])
  const answers = { ...venues, earn_positions, predmkt_positions, predmkt_open_orders, limit_orders_list }
  return show({ terminal, options, answers }, () => {
    const width = screenWidth(terminal)
    const lists = [
      ['Perpetuals', 'perp_orders', 'positions', venues.perp_orders],
      ['Spot', 'spot_venue_orders', 'balances', venues.spot_venue_orders],
      ['Predictions', 'predmkt_positions', 'positions', predmkt_positions],
      ['Vault', 'earn_positions', 'positions', earn_positions],
      ['Orders for perpetuals', 'perp_orders', 'orders', venues.perp_orders],
      ['Orders for spot', 'spot_venue_orders', 'orders', venues.spot_venue_orders],
      ['Orders for predictions', 'predmkt_open_orders', 'orders', predmkt_open_orders],
      ['Limit orders', 'limit_orders_list', '', limit_orders_list],
    ] as const
    const sections = lists.flatMap(([title, name, part, answer]) =>
      sectionOf({ title, name, part, answer }, { width, chains }),
    )
    const unread = failures(answers, width)
    if (sections.length === 0 && unread.length === 0) return ['nothing is open']
    return joined([...sections, ...notes(unread, width)])
  })
}

type Listed = { title: string; name: string; part: string; answer: unknown }

function sectionOf(
  { title, name, part, answer }: Listed,
  layout: { width: number; chains: ChainNames },
): Section[] {
  const rows: unknown = part === '' ? answer : Object(answer)[part]
  const open = (Array.isArray(rows) ? rows : []).filter(
    ({ status }) => status !== 'withdrawn' && status !== 'closed',
  )
  if (open.length === 0) return []
  const view = part === '' ? viewsByName.get(name) : partViewOf(name, part)
  return [[title, listLines(open, { ...layout, view })]]
}

const marketsShown = 10

/** `portico price BTC`: the markets of these assets, or without any the largest ones. */
export async function price(terminal: Terminal, options: Options, words: readonly string[]): Promise<number> {
  const call = { signal: terminal.signal }
  const client = clientOf(terminal, options)
  const [perp_markets, spot_venue_markets] = await Promise.all([
    client.perp.markets({}, call),
    attempt(client.spotVenue.markets({}, call)),
  ])
  const asked = words.map((word) => word.toUpperCase())
  const isAsked = (...names: string[]): boolean => names.some((name) => asked.includes(name.toUpperCase()))
  const perps = perp_markets.markets.map((market) => ({
    ...market,
    market: `${market.symbol} perp`,
    price: market.mark_price,
    change: figureFormulas.change(market.mark_price, market.prev_day_price) ?? null,
  }))
  const spots = hasFailed(spot_venue_markets)
    ? []
    : spot_venue_markets.markets.map((market) => ({ ...market, market: `${market.base} spot` }))
  const found = [
    ...perps.filter(({ symbol, name }) => isAsked(symbol, name)),
    ...spots.filter(({ base, symbol }) => isAsked(base, symbol)),
  ]
  const largest = [...perps].sort((a, b) => Number(b.volume_24h_usd) - Number(a.volume_24h_usd))
  const rows = words.length === 0 ? largest.slice(0, marketsShown) : found
  const answers = { markets: rows }
  return show({ terminal, options, answers }, () => {
    const width = screenWidth(terminal)
    const missing = asked.filter(
      (name) => !found.some((row) => row.market.split(' ')[0]?.toUpperCase() === name),
    )
    const none = missing.map(
      (name) => `no market of the venue has the name ${name}; portico perp markets lists them`,
    )
    return joined([
      ...(rows.length === 0
        ? []
        : [['', listLines(rows, { view: priceView, width, chains: new Map() })] as const]),
      ...notes([...none, ...failures({ spot_venue_markets }, width)], width),
    ])
  })
}

const priceView: View = {
  columns: ['market', 'price', 'change', 'volume_24h_usd', 'funding_rate', 'max_leverage'],
  kinds: { price: 'decimal', change: 'fraction', volume_24h_usd: 'usd', funding_rate: 'fraction' },
}
