import { balanceChange } from '#kernel/money/balance-changes.ts'
import type { Chain } from '#kernel/money/chains.ts'
import { type OperatorEnd, unusedOption, wholeOrNothing } from '#kernel/task/operator-end.ts'
import { type TransferTask, transferResult } from './transfer.ts'

export const operatorEndOfTransfer =
  ({ chains }: { chains: readonly Chain[] }): OperatorEnd =>
  (view, ending, finding) => {
    const refused = wholeOrNothing(finding) ?? unusedOption(finding)
    if (refused) return refused
    if (ending.end !== 'completed') return ending
    const { data } = view as TransferTask
    const row = chains.find(({ id }) => id === data.chain_id)
    const token = row && [row.native, ...row.tokens].find(({ address }) => address === data.token)
    const known = token ?? { address: data.token, symbol: '', decimals: 0 }
    const sent = balanceChange(data.chain_id, known, -BigInt(data.amount_units))
    return {
      ...ending,
      result: transferResult(data, known.symbol, finding.txHash),
      data: { ...ending.data, balance_changes: [sent] },
    }
  }
