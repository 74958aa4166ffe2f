import { Fault } from '#kernel/contract/fault.ts'
import { fromUnits, mulDiv, usdcDecimals } from '#kernel/money/money.ts'
import type { Queryable } from '#store/query.ts'
import type { Vault } from '#upstreams/vault/vault.ts'
import type { EarnInput } from './contract.ts'
import { vaultRefOf } from './earn-account-store.ts'
import { shareAsset } from './ledger-accounts.ts'
import type { ReadSettled } from './settled-reading.ts'
import { externalOf } from './share-division.ts'
import { type EarnTaskRow, earnTasksPage, newestPosition, positionsPage } from './store.ts'
import type { VaultRates } from './vault-rates.ts'

/** This module shows positions and their history from tasks and ledger, compared with the chain. */

type PositionsDeps = {
  db: Queryable
  vault: Vault
  chainName: string
  rates: VaultRates
  readSettled: ReadSettled
  evmAddressOf: (userId: string) => Promise<string>
}

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

const limitDefault = 100

export function createPositionsReader({
  db,
  vault,
  chainName,
  rates,
  readSettled,
  evmAddressOf,
}: PositionsDeps) {
  const vaultRef = vaultRefOf(vault)

  /** Returns the outside change of each position; null if the chain does not answer or an action is in flight. */
  const externalFor = async (userId: string): Promise<Map<string, bigint> | null> => {
    try {
      const reading = await readSettled(userId, await evmAddressOf(userId))
      if (!reading) return null
      const { positionShares, onChainUnits } = reading
      const deltas = externalOf(
        positionShares.map(({ sharesUnits }) => sharesUnits),
        onChainUnits,
      )
      if (positionShares.length > 0)
        return new Map(deltas.map((delta, index) => [positionShares[index]!.positionId, delta]))
      const newest = onChainUnits > 0n ? await newestPosition(db, userId, vaultRef) : undefined
      return new Map(newest ? [[newest.id, onChainUnits]] : [])
    } catch (fault) {
      if (fault instanceof Fault) return null
      throw fault
    }
  }

  return async (userId: string, input: EarnInput<'positions'>) => {
    const { limit = limitDefault, after, status, history_limit: historyLimit = limitDefault } = input
    const page = { limit: limit + 1, after, status, asset: shareAsset(vault) }
    const [found, tasks, vaultReading, { apy }] = await Promise.all([
      positionsPage(db, userId, vaultRef, page),
      earnTasksPage(db, userId, { limit: historyLimit + 1, after: input.history_after }),
      rates.state().catch((fault: unknown) => {
        if (fault instanceof Fault) return undefined
        throw fault
      }),
      rates.yield(),
    ])
    const positions = found.slice(0, limit)
    const rows = tasks.slice(0, historyLimit)
    const external = positions.length > 0 ? await externalFor(userId) : null

    return {
      positions: positions.map((position) => {
        const sharesUnits = BigInt(position.shares)
        const cost = BigInt(position.cost_units)
        const value = vaultReading ? worthOf(sharesUnits, vaultReading.state) : null
        return {
          id: position.id,
          status: sharesUnits > 0n ? ('active' as const) : ('withdrawn' as const),
          vault_address: vault.address,
          chain_id: vault.chainId,
          vault_chain_name: chainName,
          current_apy: apy,
          amount_deposited_usdc: fromUnits(cost, usdcDecimals),
          current_value_usdc: value === null ? null : fromUnits(value, usdcDecimals),
          unrealized_yield_usdc: value === null ? null : fromUnits(value - cost, usdcDecimals),
          shares: String(sharesUnits),
          external_delta_shares: external && String(external.get(position.id) ?? 0n),
          created_at: position.created_at.toISOString(),
        }
      }),
      history: rows.map(entryOf),
      next_after: found.length > limit ? positions.at(-1)!.id : null,
      next_history_after: tasks.length > historyLimit ? rows.at(-1)!.id : null,
    }
  }

  function worthOf(sharesUnits: bigint, state: { price: bigint; shareDecimals: number }): bigint {
    return mulDiv(sharesUnits, state.price, 10n ** BigInt(state.shareDecimals + vault.priceDigits))
  }
}
