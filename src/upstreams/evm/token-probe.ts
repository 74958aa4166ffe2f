import { decodeFunctionResult, encodeFunctionData, parseAbi } from 'viem/utils'
import { Fault } from '#kernel/contract/fault.ts'
import type { Random } from '#kernel/id.ts'
import type { SwapContracts } from '#kernel/money/chains.ts'
import type { RpcAnswer, RpcCall } from '#kernel/wire/json-rpc.ts'
import { probeCode } from './probe-code.ts'
import { revertReason } from './revert-reason.ts'
import type { EvmNode } from './rpc.ts'
import { resultOf } from './simulation.ts'
import { type Hex, headOf, hexQuantity, parseHex } from './wire.ts'

/** One step of a simulated trade: what was quoted for it, and what arrived. */
export type ProbeStep = { done: boolean; quotedUnits: bigint; gotUnits: bigint; reason: string }
export type ProbeTrade = {
  buy: ProbeStep
  /** The transfer moves a hundredth of the purchase to another account. */
  transfer: ProbeStep
  sell: ProbeStep
  /** The USDC on the other side of the token's pool, at the price of the native coin's pool; null without a pool. */
  liquidityUnits: bigint | null
}
export type TokenProbe = {
  block: bigint
  hasCode: boolean
  /** The code can be replaced: it is a proxy, a diamond, or an account that delegates to code (EIP-7702). */
  isUpgradeable: boolean
  /** The contract is a copy that runs another contract's code (ERC-1167), which cannot be replaced. */
  isMinimalProxy: boolean
  owner: string | null
  trade:
    | { type: 'traded'; trade: ProbeTrade }
    | { type: 'no_pool' }
    | { type: 'not_simulated'; reason: string }
}

const abi = parseAbi([
  'struct Request { address router; address wrapped; address usdc; address token; address receiver; uint256 spendWei; }',
  'struct Step { bool done; uint256 quoted; uint256 got; bytes reason; }',
  'struct Report { uint256 blockNumber; address owner; address facet; uint256 pathLength; uint256 poolQuoteUnits; uint256 poolUsdcUnits; uint256 poolWrappedUnits; Step buy; Step transfer; Step sell; }',
  'function run(Request request) returns (Report)',
])

/** The slots of ERC-1967 for code and beacon, of ERC-1822 for code, and of OpenZeppelin's earlier proxies. */
const proxySlots = [
  '0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc',
  '0xa3f0ad74e5423aebfd80d3ef4346578335a9a72aeaee59ff6cb3582b35133d50',
  '0xc5f16f0fcc639fa48a6947836d9850f504798523bf8c9a3a87d5876cf622bcf7',
  '0x7050c9e0f4ca769c69bd3a8ef740bc37934f8e2c036e5a723fd8ee048ed3f8c3',
]
const delegationPrefix = '0xef0100'
const minimalProxyPrefix = '0x363d3d373d3d3d363d73'
const noAddress = ['0x0000000000000000000000000000000000000000', '0x000000000000000000000000000000000000dead']

const balanceWei = 10n ** 30n
/** The gas of the simulation exceeds what the contract `Probe` gives its calls; nodes allow 25 million and more. */
const gasMax = 24_000_000n

type ProbeDeps = { node: EvmNode; random: Random }
type Deps = ProbeDeps & { swaps: SwapContracts }

/**
 * Runs the contract `Probe` at an unused address in one call. The addresses are random, so that no token can
 * recognise them, and the gas price is not zero, because tokens recognise simulations by that.
 */
function probeCall({ node: { row }, swaps, random }: Deps, token: string): RpcCall {
  const [probe, sender, receiver] = Array.from({ length: 3 }, () => randomAddress(random)) as [Hex, Hex, Hex]
  const request = {
    router: swaps.routers[0] as Hex,
    wrapped: swaps.wrapped as Hex,
    usdc: row.usdc as Hex,
    token: token as Hex,
    receiver,
    spendWei: row.probeWei,
  }
  const data = encodeFunctionData({ abi, functionName: 'run', args: [request] })
  const balance = hexQuantity(balanceWei)
  const gasPrice = hexQuantity(row.fees.capWei)
  return {
    method: 'eth_call',
    params: [
      { from: sender, to: probe, data, gas: hexQuantity(gasMax), gasPrice },
      'latest',
      { [probe]: { code: probeCode, balance }, [sender]: { balance } },
    ],
  }
}

const randomAddress = (random: Random): Hex => `0x${Buffer.from(random.bytes(20)).toString('hex')}`

export async function probeToken(deps: ProbeDeps, token: string, signal?: AbortSignal): Promise<TokenProbe> {
  const { node } = deps
  const { swaps } = node.row
  if (!swaps) throw new Fault('unavailable', `Nothing is traded on ${node.row.displayName}`)
  const [block, code, simulated, ...slots] = await node.rpc(
    [
      { method: 'eth_getBlockByNumber', params: ['latest', false] },
      { method: 'eth_getCode', params: [token, 'latest'] },
      probeCall({ ...deps, swaps }, token),
      ...proxySlots.map((slot) => ({ method: 'eth_getStorageAt', params: [token, slot, 'latest'] })),
    ],
    signal,
  )
  const head = headOf(resultOf(node.row, block!))
  const bytes = parseHex(resultOf(node.row, code!)).toLowerCase()
  const report = reportOf(simulated!)
  const words = slots.map((slot) => BigInt(parseHex(resultOf(node.row, slot))))
  const owner = 'reason' in report ? null : knownAddress(report.owner)
  const isDiamond = !('reason' in report) && knownAddress(report.facet) !== null
  return {
    block: 'reason' in report || !node.row.callsSeeBlockNumber ? head.number : report.blockNumber,
    hasCode: bytes !== '0x',
    isUpgradeable: words.some((word) => word !== 0n) || isDiamond || bytes.startsWith(delegationPrefix),
    isMinimalProxy: bytes.startsWith(minimalProxyPrefix),
    owner,
    trade: tradeOf(report),
  }
}

const knownAddress = (address: string): string | null => {
  const known = address.toLowerCase()
  return noAddress.includes(known) ? null : known
}

type Report = ReturnType<typeof decodeReport>
type NoReport = { reason: string }

const decodeReport = (data: Hex) => decodeFunctionResult({ abi, functionName: 'run', data })

/** Reads the report of the simulation. A node that ignores the code override returns nothing. */
function reportOf(answer: RpcAnswer): Report | NoReport {
  if ('error' in answer) return { reason: `the node refused the simulation: ${answer.error.message}` }
  try {
    return decodeReport(parseHex(answer.result))
  } catch {
    return { reason: 'the node does not simulate with other code at an address' }
  }
}

const stepOf = ({ done, quoted, got, reason }: Report['buy']): ProbeStep => ({
  done,
  quotedUnits: quoted,
  gotUnits: got,
  reason: done ? '' : revertReason(reason),
})

function tradeOf(report: Report | NoReport): TokenProbe['trade'] {
  if ('reason' in report) return { type: 'not_simulated', reason: report.reason }
  if (report.pathLength === 0n) return { type: 'no_pool' }
  return {
    type: 'traded',
    trade: {
      buy: stepOf(report.buy),
      transfer: stepOf(report.transfer),
      sell: stepOf(report.sell),
      liquidityUnits: liquidityOf(report),
    },
  }
}

function liquidityOf(report: Report): bigint | null {
  if (report.pathLength === 3n) return report.poolQuoteUnits
  if (report.poolWrappedUnits === 0n) return null
  return (report.poolQuoteUnits * report.poolUsdcUnits) / report.poolWrappedUnits
}
