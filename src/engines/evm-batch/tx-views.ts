import { balanceChange } from '#kernel/money/balance-changes.ts'
import type { EvmChainRow, Token } from '#kernel/money/chains.ts'
import { transactionView } from '#kernel/task/sponsored-effect.ts'
import type { Effect, JsonObject } from '#kernel/task/task.ts'
import type { Evm, Receipt } from '#upstreams/evm/evm.ts'
import { hashesOf } from './await-finality.ts'
import type { BatchTaskData } from './batch-plan.ts'

type TxSource = {
  task: { data: BatchTaskData }
  effect: Effect
  port: { chain: Pick<Evm, 'row'> }
}
type ReceiptState = { receipts: readonly (Receipt | undefined)[]; mined: Receipt | undefined }

/**
 * Returns views of the task's earlier transactions and of the effect's attempts. Of several attempts with one nonce
 * only one can be mined, so the others are then shown as replaced.
 */
export function transactionsOf(
  { task, effect, port }: TxSource,
  { receipts, mined }: ReceiptState,
  status: 'pending' | 'confirmed' | 'finalized' | 'dropped',
): JsonObject[] {
  const own = new Set(hashesOf(effect))
  const before = (task.data.transactions ?? []).filter(({ tx_hash: hash }) => !own.has(String(hash)))
  const attempts = effect.txAttempts.map((attempt, index) => {
    const receipt = receipts[index]
    const result = receipt && !receipt.success ? 'failed' : status
    const shownStatus = receipt ? (result === 'dropped' ? 'finalized' : result) : mined ? 'replaced' : status
    const { externalId: txHash, nonce } = attempt
    return transactionView(port.chain.row, { txHash, status: shownStatus, block: receipt?.block, nonce })
  })
  return [...before, ...attempts]
}

const nameOf = (row: EvmChainRow, extra: readonly Token[], address: string): Token =>
  [...row.tokens, ...extra].find((token) => token.address.toLowerCase() === address) ?? {
    symbol: '',
    name: '',
    decimals: 0,
    address,
  }

export function balanceChangesOf(
  chain: Pick<Evm, 'row' | 'transfers'>,
  receipt: Receipt,
  account: string,
  extra: readonly Token[],
): JsonObject[] {
  const own = account.toLowerCase()
  const sums = new Map<string, bigint>()
  for (const { token, from, to, amountUnits } of chain.transfers(receipt)) {
    const change = (to === own ? amountUnits : 0n) - (from === own ? amountUnits : 0n)
    sums.set(token, (sums.get(token) ?? 0n) + change)
  }
  return [...sums]
    .filter(([, units]) => units !== 0n)
    .map(([address, units]) => balanceChange(chain.row.id, nameOf(chain.row, extra, address), units))
}
