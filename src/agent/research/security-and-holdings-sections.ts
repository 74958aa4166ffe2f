import { isRecord } from '#kernel/wire/json.ts'
import { plainName } from '#market/figure-text.ts'
import type { Claim } from './claim.ts'
import { cellOf, type Facts, known, rowPointer, say } from './facts.ts'
import type { Block } from './report.ts'

/** These are the sections of a report about the token itself, other yields for dollars, and the user's holdings. */

const rowsOf = (output: unknown, list: string): readonly unknown[] => {
  const rows = isRecord(output) ? output[list] : undefined
  return Array.isArray(rows) ? rows : []
}

export type Security = { worst: Claim | undefined; blocks: readonly Block[] }

/** Makes a table without the columns that have no known cell. */
function withoutUnknown(head: readonly string[], rows: readonly (readonly string[])[]): Block {
  const isKnown = (at: number) => rows.some((row) => row[at] !== 'unknown')
  const pick = (cells: readonly string[]) => cells.filter((_, at) => isKnown(at))
  return { type: 'table', head: pick(head), rows: rows.map(pick) }
}

/** Shows the gateway's name of a chain in place of the chain id that is the value of the claim. */
const namedCell = (claim: Claim | undefined, names: ReadonlyMap<string, string>): string => {
  const name = claim && names.get(claim.value)
  return claim && name !== undefined ? `${plainName(name)} [${claim.id.slice(1)}]` : cellOf(claim)
}

export function securityOf(facts: Facts, chainNames: ReadonlyMap<string, string>): Security {
  const results = rowsOf(facts.output('security'), 'results')
  const rows = results.map((result, at) => {
    const of = (text: string, unit: Claim['unit'], field: string) =>
      facts.measured(text, unit, facts.at('security', `/results/${at}/${field}`))
    const reasons = rowsOf(result, 'reasons').map((_, index) =>
      facts.measured(
        'reason of the verdict',
        'word',
        facts.at('security', `/results/${at}/reasons/${index}/code`),
      ),
    )
    const status = of('status of the security check', 'word', 'status')
    return {
      status,
      cells: [
        namedCell(of('chain', 'text', 'chain_id'), chainNames),
        cellOf(status),
        cellOf(of('risk', 'word', 'risk_level')),
        cellOf(of('tax of a purchase', 'fraction', 'buy_tax')),
        cellOf(of('tax of a sale', 'fraction', 'sell_tax')),
        known(reasons).slice(0, 4).map(cellOf).join(', ') || 'none',
      ],
    }
  })
  if (rows.length === 0) return { worst: undefined, blocks: [] }
  const order = ['flagged', 'api_unavailable', 'skipped', 'passed']
  const statuses = known(rows.map(({ status }) => status))
  const worst = statuses.sort((a, b) => order.indexOf(a.value) - order.indexOf(b.value))[0]
  return {
    worst,
    blocks: [
      withoutUnknown(
        ['chain', 'status', 'risk', 'tax to buy', 'tax to sell', 'reasons'],
        rows.map(({ cells }) => cells),
      ),
      {
        type: 'text',
        sentences: [
          'A token that the gateway does not list is bought, sent and sold again in a simulation on its chain, or its mint is read, and services that judge tokens are asked. It can change after a check.',
        ],
      },
    ],
  }
}

export function yieldBlocks(facts: Facts): Block[] {
  const of = (text: string, unit: Claim['unit'], field: string) =>
    facts.measured(text, unit, facts.at('earn', `/${field}`))
  const sentences = known([
    say`Dollars in the vault earned ${of('yield of the vault, 30 days', 'fraction', 'apy_30d')} a year over 30 days, and ${of('yield of the vault, 7 days', 'fraction', 'apy_7d')} over 7 days.`,
    say`The vault holds ${of('assets of the vault', 'volume', 'total_assets_usdc')}; a deposit is at least ${of('least deposit', 'usd', 'min_deposit_usdc')}.`,
    facts.output('earn') === undefined ? undefined : 'It is the yield that dollars give up for the asset.',
  ])
  return sentences.length > 1 ? [{ type: 'text', sentences }] : []
}

function holdingRows(facts: Facts, chainNames: ReadonlyMap<string, string>): string[][] {
  const holdings = rowsOf(facts.output('holdings'), 'holdings')
  return holdings.flatMap((row, at) => {
    if (!isRecord(row) || String(row.symbol).toUpperCase() !== facts.asset.toUpperCase()) return []
    const of = (text: string, unit: Claim['unit'], field: string) =>
      facts.measured(text, unit, facts.at('holdings', `/holdings/${at}/${field}`))
    return [
      [
        namedCell(of('chain', 'text', 'chain_id'), chainNames),
        cellOf(of('your balance', 'size', 'balance')),
        cellOf(of('worth of your balance', 'usd', 'value_usd')),
        cellOf(of('your profit that is not realised', 'usd', 'unrealized_pnl_usd')),
      ],
    ]
  })
}

export function exposureBlocks(facts: Facts, chainNames: ReadonlyMap<string, string>): Block[] {
  const rows = holdingRows(facts, chainNames)
  const total = facts.measured('worth of your wallets', 'usd', facts.at('holdings', '/total_value_usd'))
  const perp = rowPointer(facts.output('positions'), {
    list: 'positions',
    field: 'asset',
    value: facts.asset,
  })
  const of = (text: string, unit: Claim['unit'], field: string) =>
    perp === undefined ? undefined : facts.measured(text, unit, facts.at('positions', `${perp}/${field}`))
  const spot = rowPointer(facts.output('spot_orders'), {
    list: 'balances',
    field: 'asset',
    value: facts.asset,
  })
  const held = spot && facts.measured('your spot balance', 'size', facts.at('spot_orders', `${spot}/total`))
  const sentences = known([
    rows.length === 0 && facts.output('holdings') !== undefined
      ? `Your wallets hold no ${facts.asset}.`
      : undefined,
    say`Your wallets are worth ${total} in all.`,
    say`At the venue you are ${of('side of your position', 'word', 'side')} ${of('size of your position', 'size', 'size')}, with ${of('profit of your position', 'usd', 'unrealized_pnl_usd')} that are not realised.`,
    say`It would be liquidated at ${of('liquidation price of your position', 'price', 'liquidation_price')}.`,
    perp === undefined && facts.output('positions') !== undefined ? 'You have no position in it.' : undefined,
    held && say`Your spot account holds ${held}.`,
  ])
  return [
    ...(rows.length > 0
      ? [{ type: 'table', head: ['chain', 'balance', 'worth', 'unrealised profit'], rows } as const]
      : []),
    ...(sentences.length > 0 ? [{ type: 'text', sentences } as const] : []),
  ]
}
