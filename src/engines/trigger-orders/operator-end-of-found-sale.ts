import { type OperatorEnd, unusedOption } from '#kernel/task/operator-end.ts'

/**
 * Lets an operator end the task of an order whose earlier sale was found but never quoted. The task knows no
 * amounts of that sale, so the operator says what left and what arrived.
 */
export const unquotedEnd: OperatorEnd = (_task, ending, finding) => {
  const { outcome, txHash, inUnits, outUnits } = finding
  const isSold = outcome !== 'not_executed'
  const unused = unusedOption(finding, isSold ? ['amount-in', 'amount-out'] : [])
  if (unused) return unused
  if (!isSold) return ending
  if (txHash === null) return { refusal: '--tx-hash is required: the transaction of the account that sold.' }
  if (inUnits === null) return { refusal: '--amount-in is required: what was sold, in its smallest units.' }
  if (outcome === 'executed' && outUnits === null)
    return { refusal: '--amount-out is required: what arrived, in its smallest units.' }
  const result = {
    ...ending.result,
    amount_in: String(inUnits),
    amount_out: String(outUnits ?? 0n),
    tx_hash: txHash,
    refunded: null,
  }
  return { ...ending, result }
}
