import { currencyAt, requireChain } from './chains.ts'
import type { UnsignedPayout, WithDeposit } from './payments.ts'
import { type ChainTx, type PayoutPlan, type PlannedStep, type SolverRequest, withStatus } from './request.ts'

/** Payouts of a solver that does not do as it quoted: in parts, late, twice, short, in another token, or of others. */

/** A step as a test asks for it: its share is that of the quote, or of the deposit. */
export type WantedStep = Omit<PlannedStep, 'units' | 'currency'> & { shareBps: number; currency?: string }

const fullBps = 10_000n

export function planOf(request: WithDeposit, steps: readonly WantedStep[], nowMs: number): PayoutPlan {
  const { deposit, quotedOut, destinationCurrency } = request
  return {
    sinceMs: nowMs,
    paidTxs: [],
    steps: steps.map(({ shareBps, currency, ...step }): PlannedStep => {
      const whole = step.type === 'fill' ? quotedOut : deposit.units
      const usual = step.type === 'fill' ? destinationCurrency : deposit.currency
      return {
        ...step,
        currency: currency ?? usual,
        units: String((BigInt(whole) * BigInt(Math.round(shareBps * 100))) / (fullBps * 100n)),
      }
    }),
  }
}

/** Undefined where the next step pays nothing. */
export function payoutOf(request: WithDeposit, step: PlannedStep): UnsignedPayout | undefined {
  if (step.units === '0') return undefined
  const isFill = step.type === 'fill'
  const chainId = isFill ? request.destinationChainId : request.deposit.chainId
  const currency = currencyAt(requireChain(chainId), step.currency)
  if (!currency) return undefined
  return {
    type: step.type,
    source: 'wallet',
    chainId,
    currency: currency.address,
    units: step.units,
    to: isFill ? request.recipient : (request.refundTo ?? request.user),
  }
}

/** The request after the first step of its plan, which has paid with this transaction. */
export function afterStep(request: SolverRequest, paid: ChainTx | undefined, nowMs: number): SolverRequest {
  const { plan, payout: _paid, ...rest } = request
  const [step, ...steps] = plan!.steps
  const foreign = step!.foreignTx
    ? [{ hash: step!.foreignTx, chainId: request.destinationChainId, block: 0, atMs: nowMs }]
    : []
  const paidTxs = [...plan!.paidTxs, ...foreign, ...(paid ? [paid] : [])]
  const outTxs = { all: paidTxs, last: paidTxs.slice(-1), none: [] }[step!.names]
  const next = steps.length === 0 ? rest : { ...rest, plan: { steps, sinceMs: nowMs, paidTxs } }
  const { failReason, refundFailReason } = step!
  const reasons = {
    ...(failReason !== undefined && { failReason }),
    ...(refundFailReason !== undefined && { refundFailReason }),
  }
  return withStatus({ ...next, ...reasons, outTxs }, step!.status, nowMs)
}
