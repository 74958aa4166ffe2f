/** The world of a gateway under test, read through its control port and its chains. */
import type { WorldUrls } from '#world/world.ts'
import { decimalUnits, testFunding } from '../harness/conservation.ts'
import { eventually, http, upstreamsOf } from '../harness/gateway.ts'

export const base = '8453'
export const polygon = '137'
export const solana = '7565164'
export const arbitrum = '42161'

type Token = { symbol: string; address?: string; mint?: string; decimals: number }
export type Manifest = {
  urls: WorldUrls
  contracts: Record<string, { usdc: string; vault?: string }>
  tokens: Record<string, Token[]>
}
export type Effect = {
  event: string
  owner: string
  assets_units: string
  shares_units: string
  tx_hash: string
}
type Json = Record<string, unknown>
type Fault = Json
type EvmId = keyof Manifest['urls']['evm']

export async function worldOf(control: string) {
  const ask = async <B>(method: string, path: string, body?: unknown): Promise<B> => {
    const reply = await http<B>(control + path, { method, ...(body !== undefined && { body }) })
    if (reply.status !== 200)
      throw new Error(`${method} ${path}: ${reply.status} ${JSON.stringify(reply.body)}`)
    return reply.body
  }
  const manifest = await ask<Manifest>('GET', '/')
  const { usdc, vault = '' } = manifest.contracts[base]!

  const rpc = async (method: string, params: unknown[] = [], url = manifest.urls.evm[base]) => {
    const reply = await http<{ result?: unknown; error?: unknown }>(url, {
      method: 'POST',
      body: { jsonrpc: '2.0', id: 1, method, params },
    })
    if (reply.body.error !== undefined) throw new Error(`${method}: ${JSON.stringify(reply.body.error)}`)
    return reply.body.result
  }
  const balanceOf = async (token: string, owner: string): Promise<bigint> =>
    BigInt((await rpc('eth_call', [{ to: token, data: `0x70a08231${word(owner)}` }, 'latest'])) as string)

  return {
    manifest,
    usdc,
    vault,
    rpc,
    /** The settings of an instance that uses this world without having started it. */
    env: upstreamsOf(manifest.urls),
    nativeOf: async (owner: string) => BigInt((await rpc('eth_getBalance', [owner, 'latest'])) as string),
    solOf: async (owner: string) => {
      const found = await rpc('getBalance', [owner, { commitment: 'confirmed' }], manifest.urls.solana)
      return BigInt((found as { value: number }).value)
    },
    usdcOf: (owner: string) => balanceOf(usdc, owner),
    sharesOf: (owner: string) => balanceOf(vault, owner),
    /** Unsigned: the chain impersonates the owner, as if the key were used elsewhere. */
    async moveShares(owner: string, to: string, units: bigint): Promise<void> {
      await rpc('anvil_setBalance', [owner, '0xde0b6b3a7640000'])
      await rpc('anvil_impersonateAccount', [owner])
      const data = `0xa9059cbb${word(to)}${units.toString(16).padStart(64, '0')}`
      const hash = await rpc('eth_sendTransaction', [{ from: owner, to: vault, data }])
      const mined = async () => (await rpc('eth_getTransactionReceipt', [hash])) ?? undefined
      await eventually(mined, 'the shares have moved')
      await rpc('anvil_setBalance', [owner, '0x0'])
      const why = 'shares moved outside'
      testFunding.add({ evm: owner }, { asset: 'shares', units: -units, why })
      testFunding.add({ evm: to }, { asset: 'shares', units, why })
    },
    /** Deposits and withdrawals of the vault, read from the chain. */
    effects: async (owner: string): Promise<Effect[]> =>
      (await ask<{ effects: Effect[] }>('GET', `/effects?contract=vault&owner=${owner}`)).effects,
    /** Resolves to the hash of the grant. */
    async fund(chainId: string, address: string, token: string, amount: string): Promise<string> {
      const grant = { chain_id: chainId, address, token, amount }
      const { tx_hash: txHash } = await ask<{ tx_hash: string }>('POST', '/faucet/fund', grant)
      const kind = token === 'native' ? 'gas' : token.toLowerCase()
      const units = decimalUnits(amount, token === 'native' ? 18 : 6)
      testFunding.add(
        { evm: address },
        { asset: `${kind}:${chainId}`, units, why: 'the faucet granted more' },
      )
      return txHash
    },
    /** Units of a token, or of the native coin, on any EVM chain. */
    async balance(chainId: EvmId, owner: string, token?: string): Promise<bigint> {
      const url = manifest.urls.evm[chainId]
      const call = token
        ? rpc('eth_call', [{ to: token, data: `0x70a08231${word(owner)}` }, 'latest'], url)
        : rpc('eth_getBalance', [owner, 'latest'], url)
      return BigInt((await call) as string)
    },
    tokenOn: (chainId: string, symbol: string): string =>
      manifest.tokens[chainId]!.find((each) => each.symbol === symbol)!.address!,
    /** A setting of the second provider, such as `/pricing`. */
    lifi: <B = Json>(path: string, body?: object) => ask<B>(body ? 'POST' : 'GET', `/lifi${path}`, body),
    /** A setting of the solver, such as `/realism`. */
    solver: <B = Json>(path: string, body?: object) => ask<B>(body ? 'POST' : 'GET', `/solver${path}`, body),
    setVault: (change: object) => ask('POST', '/vault', change),
    price: (change: object) => ask('POST', '/prices', change),
    advance: (seconds: number) => ask('POST', '/time', { advance_seconds: seconds }),
    fault: (target: string, fault: Fault) => ask('PUT', '/faults', { target, ...fault }),
    faultHits: async (target: string): Promise<number> => {
      const { faults } = await ask<{ faults: { target: string; hits: number }[] }>('GET', '/faults')
      return faults.find((each) => each.target === target)?.hits ?? 0
    },
    heal: () => ask('DELETE', '/faults'),
    chain: (id: string, verb: 'start' | 'stop' | 'kill') => ask('POST', `/chains/${id}/${verb}`),
  }
}
export type World = Awaited<ReturnType<typeof worldOf>>

const word = (address: string) => address.slice(2).toLowerCase().padStart(64, '0')
