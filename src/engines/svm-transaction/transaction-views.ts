import { balanceChange } from '#kernel/money/balance-changes.ts'
import type { SolanaChainRow, Token } from '#kernel/money/chains.ts'
import { transactionView } from '#kernel/task/sponsored-effect.ts'
import type { JsonObject, TaskView } from '#kernel/task/task.ts'
import type { Landing } from '#upstreams/solana/landed-balance-changes.ts'
import { attemptOf } from './await-landing.ts'
import type { SvmPort } from './svm-port.ts'
import { effectKind, type SvmTaskData } from './transaction-plan.ts'

export type ShownStatus = 'pending' | 'confirmed' | 'finalized' | 'dropped' | 'failed'
type TransactionSource = {
  task: TaskView<SvmTaskData>
  effect: TaskView['effects'][number]
  port: { chain: Pick<SvmPort['chain'], 'row'> }
}

/** Returns views of all transactions that the task signed; all of them but the last can never land. */
export function transactionsOf(
  { task, effect, port }: TransactionSource,
  { status, slot }: { status: ShownStatus; slot?: bigint },
): JsonObject[] {
  const { row } = port.chain
  const { externalId } = attemptOf(effect)
  const known = (task.data.transactions ?? []).filter(
    ({ tx_hash, chain_id }) => tx_hash !== externalId || chain_id !== row.id,
  )
  const earlier = task.effects
    .filter((each) => each.kind === effectKind && each.id !== effect.id && each.status === 'dropped')
    .map((each) => attemptOf(each).externalId)
    .filter((signature) => !known.some(({ tx_hash }) => tx_hash === signature))
    .map((signature) => transactionView(row, { txHash: signature, status: 'dropped' }))
  return [...known, ...earlier, transactionView(row, { txHash: externalId, status, block: slot })]
}

export const balanceChangesOf = (
  row: SolanaChainRow,
  { deltas }: Pick<Landing, 'deltas'>,
  extra: readonly Token[],
): JsonObject[] =>
  deltas.map(({ token, amountUnits, decimals }) => {
    const known = [row.native, ...row.tokens, ...extra].find(({ address }) => address === token)
    return balanceChange(row.id, { address: token, symbol: known?.symbol ?? '', decimals }, amountUnits)
  })
