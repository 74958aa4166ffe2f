import { decodeFunctionResult, encodeFunctionData, erc20Abi, type Hex, isAddress } from 'viem'
import type { Answer } from '#world/answer-dial.ts'
import { type Address, usdcOf, type WorldChain } from '#world/evm/chains.ts'
import type { Rpc } from '#world/evm/rpc.ts'
import { type SimulatedTrade, simulateTrade } from './simulate.ts'

/** `GET /v2/IsHoneypot` of honeypot.is: what its simulation says about a token of one of its chains. */

const implementationSlot = '0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc'

const error = (code: number, text: string): Answer => ({ status: code, body: { code, error: text } })

const readToken = async (rpc: Rpc, address: Address) => {
  const read = async (functionName: 'name' | 'symbol' | 'decimals') => {
    const data = encodeFunctionData({ abi: erc20Abi, functionName })
    const returned = (await rpc.call('eth_call', [{ to: address, data }, 'latest']).catch(() => '0x')) as Hex
    return returned === '0x' ? '' : decodeFunctionResult({ abi: erc20Abi, functionName, data: returned })
  }
  const [name, symbol, decimals] = await Promise.all([read('name'), read('symbol'), read('decimals')])
  return { name, symbol, decimals: Number(decimals || 0), address, totalHolders: 0 }
}

const riskOf = ({ buyTax, sellTax, transferTax, sellError }: SimulatedTrade) => {
  const highest = Math.max(buyTax, sellTax, transferTax)
  if (sellError !== undefined || highest >= 50) return { risk: 'honeypot', riskLevel: 100 }
  if (highest >= 20) return { risk: 'high', riskLevel: 60 }
  if (highest >= 5) return { risk: 'medium', riskLevel: 20 }
  return { risk: highest > 1 ? 'low' : 'very_low', riskLevel: highest > 1 ? 1 : 0 }
}

const flagsOf = ({ sellTax }: SimulatedTrade) =>
  sellTax >= 20
    ? [
        {
          flag: 'extremely_high_taxes',
          description: 'The token has a high tax on sales.',
          severity: 'high',
          severityIndex: 14,
        },
      ]
    : []

const resultOf = (trade: SimulatedTrade | { buyError: string }) => {
  if ('buyError' in trade)
    return {
      summary: { risk: 'unknown', riskLevel: 0, flags: [] },
      simulationSuccess: false,
      simulationError: trade.buyError,
    }
  const summary = { ...riskOf(trade), flags: flagsOf(trade) }
  const isHoneypot = summary.risk === 'honeypot'
  return {
    summary,
    simulationSuccess: true,
    honeypotResult: { isHoneypot, ...(isHoneypot ? { honeypotReason: trade.sellError ?? 'high tax' } : {}) },
    simulationResult: {
      buyTax: trade.buyTax,
      sellTax: trade.sellTax,
      transferTax: trade.transferTax,
      buyGas: String(trade.buyGas),
      sellGas: String(trade.sellGas),
    },
  }
}

/** The chains of honeypot.is that the world has. */
const servedChains = ['1', '8453']

type Deps = { chains: readonly { chain: WorldChain; rpc: () => Rpc }[] }

export const respondIsHoneypot = async ({ chains }: Deps, query: URLSearchParams): Promise<Answer> => {
  const address = query.get('address') ?? ''
  const chainId = query.get('chainID') ?? '1'
  if (!isAddress(address, { strict: false })) return error(400, 'invalid address')
  const served = chains.find(({ chain: { id } }) => id === chainId && servedChains.includes(id))
  if (!served) return error(400, 'unsupported chain')
  const { chain } = served
  const rpc = served.rpc()
  const token = address.toLowerCase() as Address
  const [code, slot] = (await rpc.batch([
    { method: 'eth_getCode', params: [token, 'latest'] },
    { method: 'eth_getStorageAt', params: [token, implementationSlot, 'latest'] },
  ])) as Hex[]
  if (code === '0x') return error(404, 'token not found')
  const trade = await simulateTrade(rpc, chain, token)
  if (!trade) return error(404, 'pair not found')
  return {
    status: 200,
    body: {
      token: await readToken(rpc, token),
      withToken: { ...usdcOf(chain), symbol: 'withToken' in trade ? trade.withToken : '' },
      ...resultOf(trade),
      flags: [],
      contractCode: {
        openSource: true,
        rootOpenSource: true,
        isProxy: BigInt(slot ?? '0x0') !== 0n,
        hasProxyCalls: BigInt(slot ?? '0x0') !== 0n,
      },
      chain: { id: chain.id, name: chain.name, currency: chain.native.symbol },
      router: chain.router,
    },
  }
}
