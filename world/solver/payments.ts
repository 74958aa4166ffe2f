import type { ChainAccount } from './chain-account.ts'
import type { KillSwitch } from './kill-points.ts'
import {
  type Attempt,
  afterStep,
  type Deposit,
  type Payout,
  type SolverRequest,
  withStatus,
} from './request.ts'
import type { Store } from './store.ts'

const resendMs = 1_000

export type WithDeposit = SolverRequest & { deposit: Deposit }
export type WithPayout = WithDeposit & { payout: Payout }
export type UnsignedPayout = Omit<Payout, 'attempts' | 'isSent'>

export type PaymentDeps = {
  store: Store
  accountOf: (chainId: number) => ChainAccount
  killSwitch: KillSwitch
  nowMs: () => number
}

export type Payments = {
  /** Signs, stores and sends, in this order: after a crash the stored bytes are sent again and no others. */
  pay: (request: WithDeposit, payout: UnsignedPayout) => Promise<void>
  /** Takes a payment further; `reverted` when it is on its chain and moved nothing. */
  follow: (request: WithPayout) => Promise<'reverted' | undefined>
}

export const createPayments = ({ store, accountOf, killSwitch, nowMs }: PaymentDeps): Payments => {
  const sentAtMs = new Map<string, number>()

  const send = async (request: WithPayout, attempt: Attempt): Promise<void> => {
    const { payout } = request
    await accountOf(payout.chainId).send(attempt)
    killSwitch.reach(`${payout.type}-sent`)
    sentAtMs.set(attempt.hash, nowMs())
    if (payout.isSent) return
    const sent = { ...request, payout: { ...payout, isSent: true } }
    const outTxs = [{ hash: attempt.hash, chainId: payout.chainId, block: 0, atMs: nowMs() }]
    const isAnnounced = payout.type === 'fill' && !request.plan
    store.save(isAnnounced ? withStatus({ ...sent, outTxs }, 'submitted', nowMs()) : sent)
  }

  const pay: Payments['pay'] = async (request, payout) => {
    const attempt = await accountOf(payout.chainId).sign({ ...payout, id: request.id })
    killSwitch.reach(`${payout.type}-signed`)
    const stored = { ...request, payout: { ...payout, attempts: [attempt], isSent: false } }
    store.save(stored)
    killSwitch.reach(`${payout.type}-stored`)
    await send(stored, attempt)
  }

  const follow: Payments['follow'] = async (request) => {
    const { payout } = request
    const { type, chainId, attempts } = payout
    const attempt = attempts.at(-1)
    if (!attempt) return undefined
    if (!payout.isSent) {
      await send(request, attempt)
      return undefined
    }
    const found = await accountOf(chainId).stateOf(attempt)
    if (found.state === 'reverted') return 'reverted'
    if (found.state === 'pending') {
      if (nowMs() - (sentAtMs.get(attempt.hash) ?? 0) > resendMs) await send(request, attempt)
    } else if (found.state === 'expired') {
      const next = await accountOf(chainId).sign({ ...payout, id: request.id })
      store.save({ ...request, payout: { ...payout, attempts: [...attempts, next], isSent: false } })
    } else {
      killSwitch.reach(`${type}-mined`)
      sentAtMs.delete(attempt.hash)
      const outTxs = [{ hash: attempt.hash, chainId, block: found.block, atMs: nowMs() }]
      if (request.plan) store.save(afterStep(request, outTxs[0], nowMs()))
      else store.save(withStatus({ ...request, outTxs }, type === 'fill' ? 'success' : 'refund', nowMs()))
    }
    return undefined
  }

  return { pay, follow }
}
