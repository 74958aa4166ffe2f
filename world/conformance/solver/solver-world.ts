/** A world with a solver, and accounts that trade with it. */
import assert from 'node:assert/strict'
import {
  type Chain,
  createPublicClient,
  createWalletClient,
  defineChain,
  erc20Abi,
  type Hex,
  http,
  type PrivateKeyAccount,
} from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import type { World, WorldPart } from '#world/world.ts'
import { ownWorld } from '../../../test/harness/own-world.ts'
import type { ItemData } from './relay-client.ts'

export const native = '0x0000000000000000000000000000000000000000'
export const usdc = {
  '8453': '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913',
  '42161': '0xaf88d065e77c8cc2239327c5edb3a432268e5831',
} as const
export const solanaChain = 792703809
export const depository = '0x4cd00e387622c35bddb9b4c962c136462338bc31'

export type ChainKey = keyof typeof usdc
export type StatusReply = {
  status: string
  details?: string
  inTxHashes: string[]
  txHashes: string[]
  updatedAt: number
}
export type QuoteReply = {
  steps: {
    id: string
    requestId: Hex
    items: { data: ItemData; check?: { endpoint: string } }[]
  }[]
  protocol?: { v2: { orderId: Hex; paymentDetails: Record<string, string> } }
  details: { currencyIn: { amount: string }; currencyOut: { amount: string; minimumAmount: string } }
  errorCode?: string
}
export type RequestReply = {
  id: string
  status: string
  data: {
    failReason: string | null
    refundFailReason: string | null
    inTxs: { txHash: string }[]
    outTxs: { txHash: string }[]
    refundCurrencyData: { amount: string; currency: { symbol: string } } | null
  }
}

const ended = ['success', 'refund', 'failure']
const pollMs = 20

export const pollFor = async <T>(
  what: string,
  read: () => Promise<T | undefined>,
  msMax = 60_000,
): Promise<T> => {
  const deadline = Date.now() + msMax
  for (;;) {
    const found = await read()
    if (found !== undefined) return found
    assert.ok(Date.now() < deadline, `${what} did not happen in ${msMax} ms`)
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
}

const chainOf = (id: ChainKey, url: string): Chain =>
  defineChain({
    id: Number(id),
    name: `local ${id}`,
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: [url] } },
  })

export type SolverWorld = Awaited<ReturnType<typeof startSolverWorld>>

export const startSolverWorld = async (only: readonly WorldPart[]) => {
  const world: World = await ownWorld([...only, 'solver'])
  const { control, solver, evm } = world.urls

  const request = async <T>(method: string, url: string, body?: unknown) => {
    const answer = await fetch(url, {
      method,
      headers: { 'content-type': 'application/json', 'x-api-key': 'test' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return { status: answer.status, headers: answer.headers, body: (await answer.json()) as T }
  }
  const expect = async <T>(method: string, url: string, body?: unknown): Promise<T> => {
    const reply = await request<T>(method, url, body)
    assert.equal(reply.status, 200, `${method} ${url}: ${JSON.stringify(reply.body)}`)
    return reply.body
  }
  const toControl = <T>(method: string, path: string, body?: unknown) =>
    expect<T>(method, `${control}${path}`, body)

  const chains = { '8453': chainOf('8453', evm['8453']), '42161': chainOf('42161', evm['42161']) }
  const transport = (id: ChainKey) => http(evm[id], { retryCount: 8 })
  const clients = {
    '8453': createPublicClient({
      chain: chains['8453'],
      transport: transport('8453'),
      pollingInterval: pollMs,
    }),
    '42161': createPublicClient({
      chain: chains['42161'],
      transport: transport('42161'),
      pollingInterval: pollMs,
    }),
  }
  const balance = (id: ChainKey, token: string, owner: string): Promise<bigint> =>
    token === native
      ? clients[id].getBalance({ address: owner as Hex })
      : clients[id].readContract({
          address: token as Hex,
          abi: erc20Abi,
          functionName: 'balanceOf',
          args: [owner as Hex],
        })
  const fund = (chain_id: string, address: string, token: string, amount: string) =>
    toControl('POST', '/faucet/fund', { chain_id, address, token, amount })

  const statusOf = (id: string) => expect<StatusReply>('GET', `${solver}/intents/status/v3?requestId=${id}`)
  const requestsOf = async (query: string): Promise<RequestReply[]> =>
    (await expect<{ requests: RequestReply[] }>('GET', `${solver}/requests/v3?${query}`)).requests

  return {
    urls: world.urls,
    chains,
    clients,
    transport,
    request,
    expect,
    toControl,
    balance,
    fund,
    statusOf,
    requestsOf,
    /** Settings and records of the solver. */
    set: <T = unknown>(path: string, body: unknown) => toControl<T>('POST', `/solver${path}`, body),
    walletOn: (id: ChainKey, account: PrivateKeyAccount) =>
      createWalletClient({ account, chain: chains[id], transport: transport(id), pollingInterval: pollMs }),
    quote: (body: Record<string, unknown>) =>
      expect<QuoteReply>('POST', `${solver}/quote/v2`, { tradeType: 'EXACT_INPUT', ...body }),
    quoteError: async (body: Record<string, unknown>) => {
      const { status, body: reply } = await request<{ errorCode: string; message: string }>(
        'POST',
        `${solver}/quote/v2`,
        body,
      )
      return { status, ...reply }
    },
    end: (id: string, msMax?: number): Promise<StatusReply> =>
      pollFor(
        `the end of ${id}`,
        async () => {
          const found = await statusOf(id).catch(() => undefined)
          return found && ended.includes(found.status) ? found : undefined
        },
        msMax,
      ),
    requestOf: async (id: string): Promise<RequestReply> => {
      const [found] = await requestsOf(`id=${id}`)
      assert.ok(found, `${id} is listed`)
      return found
    },
    newTrader: async (): Promise<PrivateKeyAccount> => {
      const account = privateKeyToAccount(generatePrivateKey())
      await fund('8453', account.address, 'native', '10')
      await fund('8453', account.address, 'USDC', '10000')
      return account
    },
    newAddress: (): Hex => privateKeyToAccount(generatePrivateKey()).address,
    /** Sends the steps of a quote as plain transactions; returns the hash of the last one. */
    sendSteps: async (account: PrivateKeyAccount, { steps }: QuoteReply): Promise<Hex> => {
      let hash: Hex = '0x'
      for (const { items } of steps)
        for (const { data } of items) {
          const id = String(data.chainId) as ChainKey
          const wallet = createWalletClient({ account, chain: chains[id], transport: transport(id) })
          hash = await wallet.sendTransaction({
            to: data.to,
            data: data.data,
            value: BigInt(data.value),
            ...(data.gas && { gas: BigInt(data.gas) }),
          })
          await clients[id].waitForTransactionReceipt({ hash })
        }
      return hash
    },
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  }
}
