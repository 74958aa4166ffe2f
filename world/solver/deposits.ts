import { keccak256, stringToHex } from 'viem'
import { type Deposit, type Hex, type SolverRequest, withStatus } from './request.ts'
import type { Store } from './store.ts'

/** The request whose deposit names this id: that of its order, or its own where it has none. */
const requestOf = (store: Store, id: Hex): SolverRequest | undefined => {
  const own = store.find(id)
  return store.findByOrder(id) ?? (own?.orderId === undefined ? own : undefined)
}

const attach = (request: SolverRequest, deposit: Deposit): SolverRequest => {
  const inTxs = [
    { hash: deposit.txHash, chainId: deposit.chainId, block: deposit.block, atMs: deposit.seenMs },
  ]
  return withStatus({ ...request, deposit, inTxs }, 'depositing', deposit.seenMs)
}

type Unmatched = { parent?: SolverRequest; isTaken?: boolean; failReason: string }

/** A deposit that no quote waits for is refunded, as a request of its own. */
const unmatched = (deposit: Deposit, { parent, isTaken = false, failReason }: Unmatched): SolverRequest => ({
  id: parent || isTaken ? keccak256(stringToHex(deposit.key)) : deposit.requestId,
  route: 'refund',
  ...(parent && { parentId: parent.id }),
  user: deposit.from,
  recipient: parent?.recipient ?? deposit.from,
  ...(parent ? parent.refundTo !== undefined && { refundTo: parent.refundTo } : { refundTo: deposit.from }),
  originChainId: deposit.chainId,
  originCurrency: deposit.currency,
  destinationChainId: deposit.chainId,
  destinationCurrency: deposit.currency,
  quotedIn: deposit.units,
  quotedOut: '0',
  minimumOut: '0',
  slippageBps: 0,
  createdMs: deposit.seenMs,
  expiresMs: deposit.seenMs,
  status: 'waiting',
  history: [],
  failReason,
  inTxs: [],
  outTxs: [],
})

/** Stores a deposit once, whatever it is read again. */
export const storeDeposit = (store: Store, deposit: Deposit): void => {
  const known = store.findByDeposit(deposit.key)
  if (known) {
    if (known.deposit?.block === deposit.block && known.vanishedMs === undefined) return
    const { vanishedMs: _, ...mined } = known
    const moved = { ...mined, deposit: { ...deposit, seenMs: known.deposit?.seenMs ?? deposit.seenMs } }
    // The request failed in the meantime: its deposit goes back.
    const isTooLate = known.status === 'failure' && known.failReason === 'DEPOSIT_REORGED'
    if (isTooLate) store.save(withStatus({ ...moved, route: 'refund' }, 'depositing', deposit.seenMs))
    else if (known.vanishedMs === undefined) store.save(moved)
    else store.save(withStatus(moved, 'depositing', deposit.seenMs))
    return
  }
  const request = requestOf(store, deposit.requestId)
  const reject = (why: Unmatched) => store.save(attach(unmatched(deposit, why), deposit))
  if (!request)
    // A deposit by the id of the request instead of that of its order is none of the request.
    reject({
      isTaken: store.find(deposit.requestId) !== undefined,
      failReason: 'ORPHANED_DEPOSIT_REFUND',
    })
  else if (request.deposit || request.route !== 'deposit')
    reject({ parent: request, failReason: 'DOUBLE_SPEND' })
  else if (request.originChainId !== deposit.chainId)
    reject({ parent: request, failReason: 'DEPOSIT_CHAIN_MISMATCH' })
  else store.save(attach(request, deposit))
}

/** Marks open deposits that a scan should have found and did not. */
export const markVanished = (
  store: Store,
  chainId: number,
  { deposits, readFrom }: { deposits: readonly Deposit[]; readFrom: number },
  nowMs: number,
): void => {
  const found = new Set(deposits.map(({ key }) => key))
  for (const request of store.openDeposits(chainId)) {
    const { deposit, payout, vanishedMs } = request
    if (!deposit || payout || vanishedMs !== undefined) continue
    if (deposit.block < readFrom || found.has(deposit.key)) continue
    const { confirmedMs: _, fillAfterMs: __, ...unconfirmed } = request
    store.save(withStatus({ ...unconfirmed, vanishedMs: nowMs }, 'waiting', nowMs))
  }
}
