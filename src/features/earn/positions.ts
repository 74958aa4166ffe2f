import type { Ledger } from '#durable/ledger.ts'
import { Fault } from '#kernel/fault.ts'
import { fromUnits, mulDiv, toUnits } from '#kernel/money.ts'
import type { Queryable } from '#store/query.ts'
import type { Vault } from '#upstreams/vault/vault.ts'
import { lotBook, shareAsset } from './lots.ts'
import type { Market } from './market.ts'
import { costOf, externalOf, type LotChange } from './shares.ts'
import { type EarnTaskRow, earnTasksOf, historyMost, type PositionRow, positionsOf } from './store.ts'

/** Positions and their history, as the tasks and the ledger tell them, held against the chain. */

type Needs = {
  on: Queryable
  vault: Vault
  chainName: string
  ledger: Pick<Ledger, 'books'>
  market: Market
  evmAddressOf: (userId: string) => Promise<string>
}

const usdcDecimals = 6
const text = (value: unknown): string | null => (typeof value === 'string' ? value : null)
const isLive = ({ status }: EarnTaskRow) => status === 'pending' || status === 'running'

const statusOf = (row: EarnTaskRow) =>
  isLive(row) ? 'pending' : row.status === 'completed' ? 'completed' : 'failed'

function entryOf(row: EarnTaskRow) {
  const action = row.kind === 'earn_deposit' ? ('deposit' as const) : ('withdraw' as const)
  const decimal = text(row.result?.amount_usdc_decimal) ?? text(row.data.amount_usdc)
  return {
    id: row.id,
    position_id: text(row.data.position_id) ?? '',
    action_type: action,
    amount_usdc: decimal === null ? null : Number(decimal),
    status: statusOf(row),
    created_at: row.created_at.toISOString(),
    amount_usdc_decimal: decimal,
    action,
    shares_delta: text(row.result?.shares_delta),
    vault_address: text(row.data.vault) ?? '',
    vault_apy_at_action: typeof row.data.apy_at_action === 'number' ? row.data.apy_at_action : null,
    tx_hash: text(row.result?.tx_hash),
    task_id: row.id,
    error_message: text(row.error?.message),
  }
}

/** What really happened to each position, oldest first. */
function changesByPosition(rows: readonly EarnTaskRow[]): Map<string, LotChange[]> {
  const byPosition = new Map<string, LotChange[]>()
  for (const row of rows.toReversed()) {
    const amount = text(row.result?.amount_usdc_decimal)
    const shares = text(row.result?.shares_delta)
    if (row.status !== 'completed' || amount === null || shares === null) continue
    const sharesUnits = BigInt(shares)
    const assetsUnits = toUnits(amount, usdcDecimals) * (sharesUnits < 0n ? -1n : 1n)
    const id = text(row.data.position_id) ?? ''
    byPosition.set(id, [...(byPosition.get(id) ?? []), { assetsUnits, sharesUnits }])
  }
  return byPosition
}

type Held = { position: PositionRow; sharesUnits: bigint }

export function positionsReader({ on, vault, chainName, ledger, market, evmAddressOf }: Needs) {
  const place = { chainId: vault.chainId, vault: vault.address.toLowerCase() }

  /** Null while the chain is silent or one of the user's own actions is under way: then nobody can tell. */
  const externalFor = async (userId: string, held: readonly Held[], rows: readonly EarnTaskRow[]) => {
    if (rows.some(isLive) || held.length === 0) return null
    try {
      const { sharesUnits } = await vault.account(await evmAddressOf(userId))
      return externalOf(
        held.map((each) => each.sharesUnits),
        sharesUnits,
      )
    } catch (fault) {
      if (fault instanceof Fault) return null
      throw fault
    }
  }

  return async (userId: string) => {
    const [positions, rows, books, seen, { apy }] = await Promise.all([
      positionsOf(on, userId, place),
      earnTasksOf(on, userId),
      ledger.books(on, userId, shareAsset(vault)),
      market.state().catch((fault: unknown) => {
        if (fault instanceof Fault) return undefined
        throw fault
      }),
      market.yield(),
    ])
    const inBook = new Map(books.map((each) => [each.book, each.availUnits + each.heldUnits]))
    const changes = changesByPosition(rows)
    const opening = new Set(rows.filter(isLive).map((row) => text(row.data.position_id)))
    // A position whose first deposit failed never was one; its attempt stands in the history.
    const held = positions
      .filter(({ id }) => changes.has(id) || opening.has(id))
      .map((position) => ({ position, sharesUnits: inBook.get(lotBook(position.id)) ?? 0n }))
    const active = held.filter(({ position, sharesUnits }) => sharesUnits > 0n || opening.has(position.id))
    const external = await externalFor(userId, active, rows)

    return {
      positions: held.map(({ position, sharesUnits }) => {
        const cost = costOf(changes.get(position.id) ?? [])
        const value = seen ? worthOf(sharesUnits, seen.state) : null
        const index = active.findIndex((each) => each.position.id === position.id)
        return {
          id: position.id,
          status: index >= 0 ? ('active' as const) : ('withdrawn' as const),
          vault_address: vault.address,
          chain_id: vault.chainId,
          vault_chain_name: chainName,
          current_apy: apy,
          amount_deposited_usdc: fromUnits(cost, usdcDecimals),
          current_value_usdc: value === null ? null : fromUnits(value, usdcDecimals),
          unrealized_yield_usdc: value === null ? null : fromUnits(value - cost, usdcDecimals),
          shares: String(sharesUnits),
          external_delta_shares: index < 0 ? '0' : external ? String(external[index] ?? 0n) : null,
          created_at: position.created_at.toISOString(),
        }
      }),
      history: rows.slice(0, historyMost).map(entryOf),
    }
  }

  function worthOf(sharesUnits: bigint, state: { price: bigint; shareDecimals: number }): bigint {
    return mulDiv(sharesUnits, state.price, 10n ** BigInt(state.shareDecimals + vault.priceDigits))
  }
}
