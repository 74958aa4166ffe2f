import { recordFill, swapValue } from '#engines/cost-basis/store.ts'
import type { OrderSwap, PreparedOrder, SwapExecution } from '#engines/trigger-orders/run-order.ts'
import { assetOf, sameAddress } from '#kernel/chains.ts'
import { Fault } from '#kernel/fault.ts'
import { addToResult } from '#kernel/one-effect.ts'
import { type StepContext, type StepResultOf, type Steps, type Tx, untypedSteps } from '#kernel/task.ts'
import { fundSwap } from './admission.ts'
import type { SwapDeps } from './deps.ts'
import { prepareSwap } from './prepare.ts'
import { swapSteps } from './steps.ts'
import type { SwapStep, SwapTask, SwapTaskData } from './task-data.ts'

/** Swaps as orders execute them, and what every swap leaves behind: the cost of what was bought. */

export function swapExecution(deps: SwapDeps): SwapExecution {
  return {
    async available(userId, { chainId, address }) {
      const evm = deps.evmOf(chainId)
      if (!evm) throw new Fault('unavailable', `Chain ${chainId} is not served`)
      const { row } = evm
      const wallet = { owner: userId, asset: assetOf(row, address), subAccount: 'wallet' }
      const account = (await deps.walletsOf(userId)).find(({ kind }) => kind === 'evm')?.address
      if (account === undefined) throw new Fault('unavailable', 'The wallets are still being made; try again')
      const { heldUnits } = await deps.ledger.balance(deps.db, wallet)
      const isNative = sameAddress(row, address, row.native.address)
      const { nativeUnits, tokens } = await evm.balances(account, isNative ? [] : [address])
      const totalUnits = isNative ? nativeUnits : tokens[0]
      if (totalUnits === undefined)
        throw new Fault('unavailable', 'The chain returned no balance; try again later')
      return totalUnits > heldUnits ? totalUnits - heldUnits : 0n
    },
    prepare: (swap, userId) => prepareOrderSwap(deps, swap, userId),
    steps: untypedSteps(costedSteps(deps)) as SwapExecution['steps'],
  }
}

async function prepareOrderSwap(
  deps: SwapDeps,
  { chainIn, chainOut, tokenIn, tokenOut, amount, slippageBps, isExit }: OrderSwap,
  userId: string,
): Promise<PreparedOrder> {
  const input = {
    chain_id_in: chainIn,
    chain_id_out: chainOut,
    token_in: tokenIn,
    token_out: tokenOut,
    ...('units' in amount ? { amount: String(amount.units) } : { amount_usd: amount.usd }),
    slippage_bps: slippageBps,
  }
  const prepared = await prepareSwap(deps, input, userId)
  const { gas, seen, data } = await fundSwap(deps, prepared)
  const { route, terms, wallet, action } = prepared
  return {
    data: { ...data, ...(isExit && { is_exit: true }) },
    spend: { account: wallet, amountUnits: route.amountInUnits, token: terms.origin.token, seen, gas },
    action: { ...action, exit: isExit },
    amounts: { inUnits: route.amountInUnits, outUnits: route.amountOutUnits },
    tokens: { in: terms.origin.token, out: terms.destination.token },
  }
}

type Result = StepResultOf<Partial<SwapTaskData>, SwapStep>

/** The steps of a swap, whose end records what was bought at which cost. */
export function costedSteps(deps: SwapDeps): Steps<SwapTaskData, SwapStep> {
  const { sign, confirm, track } = swapSteps(deps)
  const costed =
    (step: (task: SwapTask, context: StepContext) => Promise<Result>) =>
    async (task: SwapTask, context: StepContext): Promise<Result> => {
      const result = await step(task, context)
      if (!('end' in result) || result.end !== 'completed') return result
      return addToResult(result, {
        writes: (tx) => recordSwap(deps, tx, { task, result: result.result, at: context.now }),
      })
    }
  return { sign, confirm: costed(confirm), track: costed(track) }
}

type Ended = { task: SwapTask; result: { amount_in?: unknown; amount_out?: unknown } | null; at: Date }

async function recordSwap({ chains }: SwapDeps, tx: Tx, { task, result, at }: Ended): Promise<void> {
  const { data, userId } = task
  const amounts = { origin: result?.amount_in, destination: result?.amount_out }
  const [sold, bought] = (['origin', 'destination'] as const).map((end) => {
    const { chain_id: chainId, token } = data[end]
    const chain = chains.find(({ id }) => id === chainId)
    return {
      chainId,
      address: token.address,
      decimals: token.decimals,
      units: BigInt(String(amounts[end] ?? '0')),
      isUsdc: chain !== undefined && sameAddress(chain, token.address, chain.usdc),
    }
  })
  const value = swapValue(sold!, bought!, BigInt(data.usd_micros))
  await recordFill(tx, { userId, sold: sold!, bought: bought!, value, at })
}
