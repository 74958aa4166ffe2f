import { concat, encodeFunctionData, erc20Abi } from 'viem'
import { artifact } from '#world/evm/artifact.ts'
import { type Address, relayRouters } from '#world/evm/chains.ts'
import type { QuoteInput } from './quote-input.ts'
import type { SwapCallForm } from './realism.ts'
import type { Hex } from './request.ts'

/** A swap by Relay's router: it takes the input, trades at the pools for itself, and pays all that it got. */

/** What the router, and the contract that takes tokens for it, use beside the trade. */
export const gasOfRouter = 200_000n

type RouterForm = Exclude<SwapCallForm, 'pool'>
type RouterTrade = {
  form: RouterForm
  requestId: Hex
  /** The contract that trades. */
  pools: string
  inUnits: bigint
  trade: (recipient: string) => Hex
}
type RelayCall = { target: string; allowFailure: boolean; value: bigint; callData: Hex }

const callOf = (target: string, callData: Hex, value = 0n): RelayCall => ({
  target,
  allowFailure: false,
  value,
  callData,
})

export const routerCall = (
  { input, output, user, recipient, refundTo }: QuoteInput,
  { form, requestId, pools, inUnits, trade }: RouterTrade,
): { to: string; data: Hex } => {
  const { router, approvalProxy } = relayRouters[form]
  // From 3 on the id of the request is an argument; before, it follows the arguments.
  const metadata = form === '2.1' ? [] : [requestId]
  const encode = (name: 'RelayRouter' | 'RelayApprovalProxy', functionName: string, args: unknown[]): Hex =>
    encodeFunctionData({ abi: artifact(name).abi, functionName, args: [...args, ...metadata] })
  const payAll = (tokens: string[], to: string) =>
    callOf(
      router,
      encode('RelayRouter', 'cleanupErc20s', [tokens, tokens.map(() => to), tokens.map(() => 0n)]),
    )
  const approval = encodeFunctionData({
    abi: erc20Abi,
    functionName: 'approve',
    args: [pools as Address, inUnits],
  })
  const isNativeIn = input.metadata.isNative
  // What is left of the input goes back as well.
  const tokens = [output, input].filter(({ metadata }) => !metadata.isNative).map(({ address }) => address)
  const calls = [
    ...(isNativeIn ? [] : [callOf(input.address, approval)]),
    callOf(pools, trade(router), isNativeIn ? inUnits : 0n),
    ...(tokens.length > 0 ? [payAll(tokens, recipient)] : []),
    ...(output.metadata.isNative
      ? [callOf(router, encode('RelayRouter', 'cleanupNative', [0n, recipient]))]
      : []),
  ]
  const runs = [calls, refundTo ?? user, recipient]
  const data = isNativeIn
    ? encode('RelayRouter', 'multicall', runs)
    : encode('RelayApprovalProxy', 'transferAndMulticall', [[input.address], [inUnits], ...runs])
  const to = isNativeIn ? router : approvalProxy
  return { to, data: form === '2.1' ? concat([data, requestId]) : data }
}
