import { decodeFunctionResult, encodeFunctionData, getAddress, hexToString, parseAbi } from 'viem/utils'
import type { Token } from '#kernel/money/chains.ts'
import type { ViewResult } from './multicall-abi.ts'
import { readViews } from './multicall-views.ts'
import type { EvmNode } from './rpc.ts'
import { wordOf } from './simulation.ts'

/** Reads what the contract of a token says about itself. A stranger wrote these words, so they are not trusted. */

const abi = parseAbi(['function symbol() view returns (string)', 'function decimals() view returns (uint8)'])
const symbolMax = 32
const decimalsMax = 36n

export async function readTokenFacts(node: EvmNode, address: string): Promise<Token | undefined> {
  const { results } = await readViews(node, [
    { to: address, data: encodeFunctionData({ abi, functionName: 'symbol' }) },
    { to: address, data: encodeFunctionData({ abi, functionName: 'decimals' }) },
  ])
  const [named, scale] = results
  const decimals = scale && wordOf(scale)
  if (!named?.success || decimals === undefined || decimals > decimalsMax) return undefined
  const symbol = symbolOf(named)
  return { symbol, name: symbol, decimals: Number(decimals), address: getAddress(address) }
}

/** Returns the printable letters of a token's symbol; some tokens return 32 bytes instead of text. */
function symbolOf({ data }: ViewResult): string {
  try {
    const text =
      data.length === 66
        ? hexToString(data, { size: 32 })
        : decodeFunctionResult({ abi, functionName: 'symbol', data })
    return text.replace(/[^\x21-\x7e]/g, '').slice(0, symbolMax)
  } catch {
    return ''
  }
}
