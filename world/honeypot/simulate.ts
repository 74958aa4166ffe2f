import {
  type Abi,
  decodeFunctionResult,
  encodeFunctionData,
  erc20Abi,
  type Hex,
  numberToHex,
  parseAbi,
  parseEther,
} from 'viem'
import { uniswapArtifact } from '#world/evm/artifact.ts'
import { type Address, multicall3, usdcOf, type WorldChain } from '#world/evm/chains.ts'
import type { Rpc } from '#world/evm/rpc.ts'

/** A trade in two blocks that are never mined: purchase, transfer and sale of one account. */

export type SimulatedTrade = {
  /** Symbol of the token on the other side of the pool. */
  withToken: string
  buyTax: number
  sellTax: number
  transferTax: number
  buyGas: bigint
  sellGas: bigint
  /** Absent where the sale succeeded. */
  sellError?: string
}

const trader: Address = '0x5117a70000000000000000000000000000000001'
const receiver: Address = '0x5117a70000000000000000000000000000000002'
const deadline = 2n ** 64n
const balanceAbi = parseAbi(['function getEthBalance(address owner) view returns (uint256)'])

type Call = { to: Address; abi: Abi; functionName: string; args: readonly unknown[]; value?: bigint }
type Reply = { status: Hex; returnData: Hex; gasUsed: Hex; error?: { message: string } }

const routerAbi = (): Abi => uniswapArtifact('v2-periphery/build/UniswapV2Router02.json').abi

/** The replies of each block's calls. */
const simulate = async (rpc: Rpc, blocks: readonly (readonly Call[])[]): Promise<Reply[][]> => {
  const blockStateCalls = blocks.map((calls, index) => ({
    ...(index === 0 ? { stateOverrides: { [trader]: { balance: numberToHex(parseEther('1000000')) } } } : {}),
    calls: calls.map(({ to, abi, functionName, args, value = 0n }) => ({
      from: trader,
      to,
      input: encodeFunctionData({ abi, functionName, args }),
      value: numberToHex(value),
      gas: numberToHex(3_000_000),
    })),
  }))
  const simulated = (await rpc.call('eth_simulateV1', [{ blockStateCalls }, 'latest'])) as {
    calls: Reply[]
  }[]
  return simulated.map(({ calls }) => calls)
}

const unitsOf = ({ abi, functionName }: Call, reply: Reply | undefined): bigint => {
  if (reply?.status !== '0x1') return 0n
  const decoded = decodeFunctionResult({ abi, functionName, data: reply.returnData })
  return (Array.isArray(decoded) ? decoded.at(-1) : decoded) as bigint
}

const percent = (quoted: bigint, got: bigint): number =>
  quoted === 0n || got >= quoted ? 0 : Number(((quoted - got) * 10_000n) / quoted) / 100

const quoteCall = (chain: WorldChain, units: bigint, path: readonly Address[]): Call => ({
  to: chain.router,
  abi: routerAbi(),
  functionName: 'getAmountsOut',
  args: [units, path],
})
const balanceCall = (token: Address, owner: Address): Call => ({
  to: token,
  abi: erc20Abi as Abi,
  functionName: 'balanceOf',
  args: [owner],
})

type Route = { path: Address[]; quoted: bigint; withToken: string }

const routeOf = async (rpc: Rpc, chain: WorldChain, token: Address, spend: bigint) => {
  const wrapped = chain.tokens.find(({ kind }) => kind === 'wrapped')
  if (!wrapped) return undefined
  const usdc = usdcOf(chain)
  const paths = [
    { path: [wrapped.address, token], withToken: wrapped.symbol },
    { path: [wrapped.address, usdc.address, token], withToken: usdc.symbol },
  ]
  const calls = paths.map(({ path }) => quoteCall(chain, spend, path))
  const [replies = []] = await simulate(rpc, [calls])
  const routes = paths.map(
    (each, index): Route => ({
      ...each,
      quoted: unitsOf(calls[index] as Call, replies[index]),
    }),
  )
  return routes.filter(({ quoted }) => quoted > 0n).sort((a, b) => (a.quoted < b.quoted ? 1 : -1))[0]
}

/** Buys and sells once; undefined where the token has no pool. */
export const simulateTrade = async (
  rpc: Rpc,
  chain: WorldChain,
  token: Address,
): Promise<SimulatedTrade | { buyError: string } | undefined> => {
  const spend = parseEther(chain.native.symbol === 'POL' ? '50' : '0.01')
  const route = await routeOf(rpc, chain, token, spend)
  if (!route) return undefined
  const { path, quoted, withToken } = route
  const abi = routerAbi()
  const buy: Call = {
    to: chain.router,
    abi,
    functionName: 'swapExactETHForTokensSupportingFeeOnTransferTokens',
    args: [0n, path, trader, deadline],
    value: spend,
  }
  const held = balanceCall(token, trader)
  const [first = []] = await simulate(rpc, [[buy, held]])
  const bought = unitsOf(held, first[1])
  if (first[0]?.status !== '0x1' || bought === 0n)
    return { buyError: first[0]?.error?.message ?? 'nothing arrived' }

  const moved = bought / 100n + 1n
  const sold = bought - moved
  const back = path.toReversed()
  const arrived = balanceCall(token, receiver)
  const cash: Call = { to: multicall3, abi: balanceAbi as Abi, functionName: 'getEthBalance', args: [trader] }
  const transfer: Call = {
    to: token,
    abi: erc20Abi as Abi,
    functionName: 'transfer',
    args: [receiver, moved],
  }
  const approve: Call = {
    to: token,
    abi: erc20Abi as Abi,
    functionName: 'approve',
    args: [chain.router, sold],
  }
  const sell: Call = {
    to: chain.router,
    abi,
    functionName: 'swapExactTokensForETHSupportingFeeOnTransferTokens',
    args: [sold, 0n, back, trader, deadline],
  }
  const quote = quoteCall(chain, sold, back)
  const [, second = []] = await simulate(rpc, [[buy], [transfer, arrived, approve, quote, cash, sell, cash]])
  const [, arrivedReply, , quoteReply, before, sellReply, after] = second
  const sellError = sellReply?.status === '0x1' ? {} : { sellError: sellReply?.error?.message ?? 'reverted' }
  return {
    withToken,
    buyTax: percent(quoted, bought),
    sellTax: percent(unitsOf(quote, quoteReply), unitsOf(cash, after) - unitsOf(cash, before)),
    transferTax: percent(moved, unitsOf(arrived, arrivedReply)),
    buyGas: BigInt(first[0].gasUsed),
    sellGas: BigInt(sellReply?.gasUsed ?? '0x0'),
    ...sellError,
  }
}
