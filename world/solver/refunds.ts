import type { ChainAccount } from './chain-account.ts'
import { currencyAt, requireChain, usdcOn } from './chains.ts'
import type { Inventory } from './inventory.ts'
import { parseUsd, unitsCoveringUsd, unitsOfUsd, usdOfUnits } from './money.ts'
import type { Payments, UnsignedPayout, WithDeposit } from './payments.ts'
import type { Prices } from './prices.ts'
import type { RealismControl } from './realism.ts'
import { type SolverRequest, withStatus } from './request.ts'
import type { Store } from './store.ts'

export type FailureReasons = { failReason: string; refundFailReason?: string }

export type Refunds = {
  /** Pays a deposit back, or ends the request where that is not possible. */
  refund: (request: WithDeposit, reasons: FailureReasons) => Promise<void>
  fail: (request: SolverRequest, reasons: FailureReasons) => void
}

export type RefundDeps = {
  store: Store
  accountOf: (chainId: number) => ChainAccount
  inventory: Inventory
  payments: Payments
  prices: Prices
  realism: RealismControl
  nowMs: () => number
}

export const createRefunds = (deps: RefundDeps): Refunds => {
  const { store, accountOf, inventory, payments, prices, realism, nowMs } = deps

  const fail: Refunds['fail'] = (request, reasons) => {
    store.save(withStatus({ ...request, ...reasons }, 'failure', nowMs()))
  }

  /** Nothing where the price is not known. */
  const gasUnitsOf = async (chainId: number, address: string): Promise<bigint> => {
    const chain = requireChain(chainId)
    const currency = currencyAt(chain, address)
    const price = currency && (await prices.priceOf(currency))
    return currency && price ? unitsCoveringUsd(parseUsd(chain.gasUsd), currency, price) : 0n
  }

  const refundInUsdc = async (
    { deposit }: WithDeposit,
    to: string,
    units: bigint,
  ): Promise<UnsignedPayout | undefined> => {
    const chain = requireChain(deposit.chainId)
    const [currency, usdc] = [currencyAt(chain, deposit.currency), usdcOn(chain)]
    if (!currency || currency === usdc || !realism.isHit(realism.current().refundsInUsdc)) return undefined
    const usd = usdOfUnits(units, currency, await prices.requirePrice(currency))
    const usdcUnits = unitsOfUsd(usd, usdc, await prices.requirePrice(usdc))
    if (usdcUnits === 0n || (await inventory.available(usdc)) < usdcUnits) return undefined
    return {
      type: 'refund',
      source: 'wallet',
      chainId: chain.id,
      currency: usdc.address,
      units: String(usdcUnits),
      to,
    }
  }

  const refund: Refunds['refund'] = async (request, reasons) => {
    const { chainId, currency, units } = request.deposit
    const { refundTo } = request
    // Without an address for refunds the solver keeps the deposit until someone asks.
    if (reasons.refundFailReason !== undefined || refundTo === undefined) return fail(request, reasons)
    const gas = realism.current().sponsoredRefunds ? 0n : await gasUnitsOf(chainId, currency)
    const left = BigInt(units) - gas
    if (left <= 0n) return fail(request, { ...reasons, refundFailReason: 'AMOUNT_TOO_LOW_TO_REFUND' })
    const inKind: UnsignedPayout = {
      type: 'refund',
      source: requireChain(chainId).vm === 'evm' ? 'depository' : 'wallet',
      chainId,
      currency,
      units: String(left),
      to: refundTo,
    }
    const payout = (await refundInUsdc(request, refundTo, left)) ?? inKind
    if (!(await accountOf(chainId).simulate({ ...payout, id: request.id }))) return fail(request, reasons)
    await payments.pay({ ...request, ...reasons }, payout)
  }

  return { refund, fail }
}
