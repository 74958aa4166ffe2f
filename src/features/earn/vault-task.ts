import type { Ledger } from '#durable/ledger/ledger.ts'
import type { EvmBatches } from '#engines/evm-batch/batch.ts'
import type { BatchOptions, BatchTaskData } from '#engines/evm-batch/batch-plan.ts'
import type { Clock } from '#kernel/clock.ts'
import { invalid, notFound } from '#kernel/contract/fault.ts'
import { isUuid, type Random } from '#kernel/id.ts'
import type { Token } from '#kernel/money/chains.ts'
import {
  fixedPointDecimals,
  fromFixedPoint,
  fromUnits,
  mulDiv,
  toUnits,
  usdcDecimals,
} from '#kernel/money/money.ts'
import type { Policy } from '#kernel/task/signer.ts'
import type { TaskView, Tx } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Receipt } from '#upstreams/evm/evm.ts'
import type { Flow, Vault } from '#upstreams/vault/vault.ts'
import { addChange, earnAccountOf, minBlockFor, vaultRefOf } from './earn-account-store.ts'
import type { EarnLimits } from './limits.ts'
import type { ReadSettled } from './settled-reading.ts'
import { findPosition, type PositionRow } from './store.ts'
import type { VaultRates } from './vault-rates.ts'

export type VaultTaskDeps = {
  db: Queryable
  vault: Vault
  usdc: string
  shareToken: Token
  ledger: Pick<Ledger, 'balance' | 'subAccounts'>
  readSettled: ReadSettled
  batches: EvmBatches
  policy: Pick<Policy, 'check'>
  rates: Pick<VaultRates, 'yield'>
  evmAddressOf: (userId: string) => Promise<string>
  changed: (userId: string, chainId: string) => void
  limits: EarnLimits
  clock: Clock
  random: Random
}

export type VaultTaskData = BatchTaskData & {
  position_id: string
  account: string
  assets_units: string | null
  chain_id: string
  vault: string
  amount_usdc: string | null
  apy_at_action: number | null
}
type VaultTask = TaskView<VaultTaskData>
export type VaultProof = { flow: Flow; receipt: Receipt }

export const admissionMs = 10 * 60_000

export async function positionOf(
  { db, vault }: Pick<VaultTaskDeps, 'db' | 'vault'>,
  userId: string,
  id: string,
): Promise<PositionRow> {
  const found = isUuid(id) ? await findPosition(db, userId, vaultRefOf(vault), id) : undefined
  if (!found) throw notFound('position', 'earn_positions')
  return found
}

export function parseAmount(text: string, minimum: string): bigint {
  const units = toUnits(text, usdcDecimals)
  if (units >= toUnits(minimum, usdcDecimals)) return units
  const message = `Input should be at least ${minimum} USDC, which is the minimum`
  throw invalid('amount_usdc', 'below_minimum', message, { minimum, unit: 'USDC' })
}

/** Drives a deposit or withdrawal, which only the events of the vault prove. */
export const vaultDriver = <Data extends VaultTaskData>(
  { batches, vault, shareToken, changed }: VaultTaskDeps,
  flowOf: (logs: Receipt['logs'], account: string) => Flow | undefined,
  options: Pick<BatchOptions<Data, VaultProof>, 'spendsLedger'> = {},
) =>
  batches.driver<Data, VaultProof>({
    ...options,
    tokens: [shareToken],
    prove({ data }: TaskView<Data>, receipt): VaultProof | undefined {
      const flow = flowOf(receipt.logs, data.account)
      return flow && { flow, receipt }
    },
    onFinal: ({ userId }) => changed(userId, vault.chainId),
  })

/** The oldest block that shows the user's last settlement. */
export const minBlockOf = async ({ db, vault, clock }: VaultTaskDeps, userId: string): Promise<bigint> =>
  minBlockFor(await earnAccountOf(db, userId, vaultRefOf(vault)), clock.now())

export type FlowDeps = { vault: Pick<Vault, 'chainId' | 'address'> } & Pick<
  VaultTaskDeps,
  'shareToken' | 'clock'
>

/**
 * Ends a task whose deposit or withdrawal is proven. `flow` has the amounts; `sign` is 1 for a deposit and -1 for a
 * withdrawal.
 */
export function settledFlow(
  { vault, shareToken, clock }: FlowDeps,
  task: VaultTask,
  { flow, receipt }: { flow: Flow; receipt: { block: bigint; txHash: string } },
  sign: 1n | -1n,
) {
  const { position_id: positionId } = task.data
  const amount = fromUnits(flow.assetsUnits, usdcDecimals)
  const sharesUnits = sign * flow.sharesUnits
  const change = {
    positionId,
    assetsUnits: flow.assetsUnits,
    sharesUnits,
    block: receipt.block,
    createdAt: task.createdAt,
    now: clock.now(),
  }
  return {
    end: 'completed' as const,
    outcome: 'executed' as const,
    result: {
      position_id: positionId,
      amount_usdc: Number(amount),
      amount_usdc_decimal: amount,
      shares_delta: String(sharesUnits),
      share_price: paidPerShare(flow, shareToken.decimals),
      tx_hash: receipt.txHash,
    },
    writes: async (tx: Tx) => void (await addChange(tx, task.userId, vaultRefOf(vault), change)),
  }
}

/** The price paid, in USDC per whole share. */
export const paidPerShare = ({ assetsUnits, sharesUnits }: Flow, shareDecimals: number): string => {
  if (sharesUnits === 0n) return '0'
  const scale = 10n ** BigInt(shareDecimals + fixedPointDecimals - usdcDecimals)
  return fromFixedPoint(mulDiv(assetsUnits, scale, sharesUnits))
}
