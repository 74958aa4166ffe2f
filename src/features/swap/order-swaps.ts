import { effectKind as batchKind } from '#engines/evm-batch/batch-plan.ts'
import { effectKind as transactionKind } from '#engines/svm-transaction/transaction-plan.ts'
import type {
  OrderSwap,
  OrderTrade,
  PreparedOrder,
  SwapExecution,
} from '#engines/trigger-orders/swap-port.ts'
import { chainNotServed, type TokenAt } from '#kernel/contract/token-ref.ts'
import { sameAddress } from '#kernel/money/chains.ts'
import { untypedSteps } from '#kernel/task/task.ts'
import { soldData } from './admission.ts'
import type { SwapDeps } from './deps.ts'
import { costedSteps } from './record-swap-cost.ts'
import { bestRoute, urgencyOf } from './route/best-route.ts'
import { swapLimits } from './route/limits.ts'
import { prepareSwap } from './route/prepare-swap.ts'
import { accountOn } from './route/request-terms.ts'
import { valueAtPrice } from './route/token-value.ts'
import { walletBalance } from './route/wallet-balance.ts'
import { changesOf } from './settle/balance-changes.ts'
import { fundLeg } from './swap-as-leg.ts'
import { ownNames } from './task-data.ts'

/** This module executes the swaps of orders. */

export function createSwapExecution(deps: SwapDeps): SwapExecution {
  return {
    async available(userId, { chainId, address }) {
      const chain = deps.chains.find(({ id }) => id === chainId)
      if (!chain) throw chainNotServed(chainId)
      const account = accountOn(chain, await deps.walletsOf(userId))
      const isNative = sameAddress(chain, address, chain.native.address)
      const held = { chain, token: { address }, isNative }
      const { heldUnits, freeUnits } = await walletBalance(deps, { userId, account }, held)
      return { units: freeUnits, heldUnits }
    },
    quoteOut: (trade, userId) => orderQuoteOut(deps, trade, userId),
    isExitLoss,
    prepare: (swap, userId) => prepareOrderSwap(deps, swap, userId),
    effectKindOn: (chainId) => (deps.evmOf(chainId) ? batchKind : transactionKind),
    soldBefore: (userId, sale) => soldBefore(deps, userId, sale),
    async quoteSold(swap, userId) {
      const prepared = await prepareSwap(deps, inputOf(swap), { userId, isAhead: true })
      return { ...soldData(deps, prepared), is_order: true }
    },
    steps: untypedSteps(costedSteps(deps, ownNames)) as SwapExecution['steps'],
  }
}

type Sale = Parameters<SwapExecution['soldBefore']>[1]

async function soldBefore(
  deps: SwapDeps,
  userId: string,
  { chainId, address, executionId }: Sale,
): Promise<bigint | undefined> {
  const { row, transfers } = deps.evmOf(chainId) ?? {}
  const chain = row ?? deps.solana?.row
  if (chain?.id !== chainId) throw chainNotServed(chainId)
  const account = accountOn(chain, await deps.walletsOf(userId))
  const order = { chainId, userId, account, executionId }
  if (!row) {
    const landing = await deps.svm.executed(order)
    return landing && -(landing.deltas.find(({ token }) => token === address)?.amountUnits ?? 0n)
  }
  const batch = await deps.batches.executed(order)
  if (!batch) return undefined
  const { receipt, calls } = batch
  const wraps = row.swaps ? deps.calls.wrapsOf(receipt.logs, row.swaps) : []
  const changes = changesOf(row, { account, calls, transfers: transfers!(receipt), wraps })
  return -(changes.get(address.toLowerCase()) ?? 0n)
}

/** A sale with a larger loss does not count as an exit: a stolen trading token could otherwise sell at any price. */
const isExitLoss: SwapExecution['isExitLoss'] = (maxImpactBps = swapLimits.priceImpactBps.default) =>
  maxImpactBps <= swapLimits.priceImpactBps.default

async function orderQuoteOut(
  deps: SwapDeps,
  { origin, destination, amountInUnits }: OrderTrade,
  userId: string,
): Promise<bigint> {
  const swapToken = ({ chain, token }: OrderTrade['origin']): TokenAt => ({
    chain,
    token,
    isNative: sameAddress(chain, token.address, chain.native.address),
  })
  const ends = { origin: swapToken(origin), destination: swapToken(destination) }
  const [wallets, valueInMicros] = await Promise.all([
    deps.walletsOf(userId),
    valueAtPrice(deps, ends.origin, amountInUnits),
  ])
  const terms = {
    ...ends,
    userId,
    account: accountOn(origin.chain, wallets),
    recipient: accountOn(destination.chain, wallets),
    amountInUnits,
    valueInMicros,
    slippageBps: swapLimits.slippageBps.default,
    maxImpactBps: swapLimits.priceImpactBps.default,
    deadlineSeconds: 0,
    maxFeeBps: null,
  }
  const { route } = await bestRoute(deps, terms, urgencyOf(terms, { isExecuted: false }))
  return route.amountOutUnits
}

async function prepareOrderSwap(deps: SwapDeps, swap: OrderSwap, userId: string): Promise<PreparedOrder> {
  const { chainIn, tokenIn, amount, isExit } = swap
  const sold =
    isExit && 'units' in amount
      ? { units: await aboveRent(deps, { chainIn, tokenIn, ...amount }, userId) }
      : amount
  const input = inputOf({ ...swap, amount: sold })
  const prepared = await prepareSwap(deps, input, { userId, ...(isExit && { urgency: 'exit' as const }) })
  const { route, terms, action } = prepared
  const exit = isExit && isExitLoss(terms.maxImpactBps)
  const { data, spend } = await fundLeg(deps, prepared, { isExit: exit })
  return {
    data: { ...data, is_order: true, ...(exit && { is_exit: true }) },
    spend,
    action: { ...action, exit, principal: 'gateway' },
    amounts: { inUnits: route.amountInUnits, outUnits: route.amountOutUnits },
    tokens: { in: terms.origin.token, out: terms.destination.token },
  }
}

const inputOf = ({
  chainIn,
  chainOut,
  tokenIn,
  tokenOut,
  amount,
  slippageBps,
  maxImpactBps,
}: Omit<OrderSwap, 'isExit'>) => ({
  chain_id_in: chainIn,
  chain_id_out: chainOut,
  token_in: tokenIn,
  token_out: tokenOut,
  ...('units' in amount ? { amount: String(amount.units) } : { amount_usd: amount.usd }),
  slippage_bps: slippageBps,
  ...(maxImpactBps !== undefined && { max_price_impact_bps: maxImpactBps }),
})

type SaleOfAll = Pick<OrderSwap, 'chainIn' | 'tokenIn'> & { units: bigint }

/** An account on Solana holds its rent or nothing, so an exit that would leave less than the rent leaves the rent. */
async function aboveRent(
  deps: SwapDeps,
  { chainIn, tokenIn, units }: SaleOfAll,
  userId: string,
): Promise<bigint> {
  const { solana } = deps
  if (!solana || chainIn !== solana.row.id || tokenIn !== solana.row.native.address) return units
  const account = accountOn(solana.row, await deps.walletsOf(userId))
  const [total, rent] = await Promise.all([solana.balance(account, tokenIn, true), solana.rentLamports(0)])
  const rest = total - units
  return rest > 0n && rest < rent && total > rent ? total - rent : units
}
