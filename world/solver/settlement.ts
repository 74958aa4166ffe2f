import { randomBytes } from 'node:crypto'
import { toBase58 } from '#world/solana/base58.ts'
import type { ChainAccount } from './chain-account.ts'
import { requireChain } from './chains.ts'
import { type FillAmountDeps, fillAmount } from './fill-amount.ts'
import type { Payments, WithDeposit, WithPayout } from './payments.ts'
import { createPayoutPlans, hasPlan, type WantedPayouts } from './payout-plan.ts'
import type { FailureReasons, Refunds } from './refunds.ts'
import { type SolverRequest, withStatus } from './request.ts'
import type { Store } from './store.ts'

/** A referrer that has every deposit refunded, as at Relay. */
const refundedReferrer = 'debug-force-refund'
const blockMsMax = 2_000

export type SettlementDeps = FillAmountDeps & {
  store: Store
  accountOf: (chainId: number) => ChainAccount
  payments: Payments
  refunds: Refunds
  /** The newest block that was read, by chain. */
  heads: ReadonlyMap<number, number>
}

export type Settlement = {
  /** Takes a request as far as it gets without waiting. */
  advance: (request: SolverRequest) => Promise<void>
  /** Ends the next deposits with these reasons. */
  force: (reasons: FailureReasons, count: number) => void
  /** Announces this transaction as the fill of the next deposits, which are then refunded. */
  announce: (txHash: string, count: number) => void
  /** Pays the next deposits by these steps. */
  plan: (payouts: WantedPayouts) => void
}

const hasDeposit = (request: SolverRequest): request is WithDeposit => request.deposit !== undefined
const hasPayout = (request: WithDeposit): request is WithPayout => request.payout !== undefined

export const createSettlement = (deps: SettlementDeps): Settlement => {
  const { store, accountOf, payments, realism, heads, nowMs } = deps
  const { refund, fail } = deps.refunds
  let forced: { reasons: FailureReasons; count: number } | undefined
  let announced: { txHash: string; count: number } | undefined
  const plans = createPayoutPlans({ store, payments, nowMs })

  const takeForced = ({ referrer }: SolverRequest): FailureReasons | undefined => {
    if (referrer === refundedReferrer) return { failReason: 'UNKNOWN' }
    if (!forced) return undefined
    const { reasons, count } = forced
    forced = count > 1 ? { reasons, count: count - 1 } : undefined
    return reasons
  }

  const takeAnnounced = (): string | undefined => {
    if (!announced) return undefined
    const { txHash, count } = announced
    announced = count > 1 ? { txHash, count: count - 1 } : undefined
    return txHash
  }

  /** Announces a fill that is never sent, by default as a transaction that does not exist. */
  const retract = (request: WithDeposit, txHash?: string): void => {
    const chain = requireChain(request.destinationChainId)
    const hash =
      txHash ?? (chain.vm === 'evm' ? `0x${randomBytes(32).toString('hex')}` : toBase58(randomBytes(64)))
    const outTxs = [{ hash, chainId: chain.id, block: 0, atMs: nowMs() }]
    const retractAtMs = nowMs() + realism.current().retractAfterMs
    store.save(withStatus({ ...request, outTxs, retractAtMs }, 'success', nowMs()))
  }

  const decide = async (request: WithDeposit): Promise<void> => {
    if (request.route === 'refund') return refund(request, { failReason: request.failReason ?? 'UNKNOWN' })
    const failure = takeForced(request)
    if (failure) return refund(request, failure)
    const units = await fillAmount(deps, request)
    if (typeof units === 'string') return refund(request, { failReason: units })
    const fill = {
      type: 'fill',
      source: 'wallet',
      chainId: request.destinationChainId,
      currency: request.destinationCurrency,
      units: String(units),
      to: request.recipient,
    } as const
    if (!(await accountOf(fill.chainId).simulate({ ...fill, id: request.id })))
      return refund(request, { failReason: 'EXECUTION_REVERTED' })
    if (plans.begin(request)) return
    const foreignHash = takeAnnounced()
    if (foreignHash !== undefined) return retract(request, foreignHash)
    if (realism.isHit(realism.current().retracted)) return retract(request)
    await payments.pay(request, fill)
  }

  const follow = async (request: WithPayout): Promise<void> => {
    if ((await payments.follow(request)) === undefined) return
    const { payout, ...unpaid } = request
    if (payout.type === 'fill') await refund({ ...unpaid, outTxs: [] }, { failReason: 'EXECUTION_REVERTED' })
    else fail(request, { failReason: request.failReason ?? 'UNKNOWN' })
  }

  const isConfirmed = ({ deposit }: WithDeposit): boolean => {
    const { confirmations } = realism.current()
    const depth = (heads.get(deposit.chainId) ?? deposit.block) - deposit.block + 1
    return depth >= confirmations || nowMs() - deposit.seenMs >= (confirmations - 1) * blockMsMax
  }

  const advance = async (request: SolverRequest): Promise<void> => {
    if (!hasDeposit(request)) return
    const now = nowMs()
    if (request.retractAtMs !== undefined) {
      const { retractAtMs, ...announced } = request
      if (now < retractAtMs) return
      const unfilled = withStatus({ ...announced, outTxs: [] }, 'pending', now)
      await refund({ ...unfilled, deposit: request.deposit }, { failReason: 'EXECUTION_REVERTED' })
    } else if (hasPayout(request)) await follow(request)
    else if (hasPlan(request)) await plans.follow(request)
    else if (request.vanishedMs !== undefined) {
      if (now - request.vanishedMs > realism.current().vanishedMsMax)
        fail(request, { failReason: 'DEPOSIT_REORGED' })
    } else if (request.confirmedMs === undefined) {
      if (!isConfirmed(request)) return
      const lagMs = request.route === 'refund' ? 0 : realism.lagMs(realism.current().fillLag)
      const confirmed = withStatus({ ...request, confirmedMs: now, fillAfterMs: now + lagMs }, 'pending', now)
      store.save(confirmed)
      await advance(confirmed)
    } else if (now >= (request.fillAfterMs ?? 0)) await decide(request)
    else if (request.status !== 'delayed' && now - request.confirmedMs > realism.current().delayedAfterMs)
      store.save(withStatus(request, 'delayed', now))
  }

  return {
    advance,
    force: (reasons, count) => {
      forced = { reasons, count }
    },
    announce: (txHash, count) => {
      announced = { txHash, count }
    },
    plan: plans.set,
  }
}
