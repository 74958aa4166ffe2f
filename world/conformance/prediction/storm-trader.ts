/** A trader of a storm: it repeats each request until it is answered, and remembers what was accepted. */
import { createHmac } from 'node:crypto'
import { type Hex, keccak256, numberToHex, stringToHex } from 'viem'
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { chainId, contracts } from '#world/polymarket/chain/addresses.ts'
import { approvalCalls, approveAllCall, splitCall } from '#world/polymarket/chain/calls.ts'
import type { Address, Call } from '#world/polymarket/chain/chain-terms.ts'
import { walletOf } from '#world/polymarket/chain/ids.ts'
import { createReads } from '#world/polymarket/chain/reads.ts'
import { markets } from '#world/polymarket/markets.ts'
import type { RandomState } from '#world/venue-core/random.ts'
import { eventually } from '../../../test/harness/gateway.ts'
import { signBatch } from './polygon.ts'
import type { Answer, StormWorld } from './storm-world.ts'

export type AcceptedOrder = { type: string; isPostOnly: boolean; isCanceled: boolean }

export type StormTrader = {
  owner: PrivateKeyAccount
  address: Address
  signatureType: 0 | 3
  random: RandomState
  apiKey: string
  /** Orders that the venue has accepted. */
  orders: Map<string, AcceptedOrder>
  /** Some that may still be open, the newest last. */
  open: string[]
  /** By token: what its own transactions have changed. */
  changes: Map<string, bigint>
  send: (method: string, path: string, body?: unknown) => Promise<FinalAnswer>
  /** Whether the transaction succeeded. */
  execute: (call: Call) => Promise<boolean>
}

/** A repeat comes after requests of the same body of which nobody knows what became. */
type FinalAnswer = Answer & { isRepeat: boolean }

type Credentials = { apiKey: string; secret: string; passphrase: string }

const unit = 1_000_000n
const stock = 400n * unit
const patienceMs = 300_000
const farDeadline = 10n ** 11n
const json = (body: unknown): string => (body === undefined ? '' : JSON.stringify(body))

/** Asks until there is an answer that is none of a broken connection or of a process that has just started. */
const persist = (
  world: StormWorld,
  what: string,
  ask: () => Promise<Answer | undefined>,
): Promise<FinalAnswer> => {
  let isRepeat = false
  return eventually(
    async () => {
      const answer = await ask()
      if (answer && answer.status < 500) return { ...answer, isRepeat }
      world.lost += 1
      isRepeat = true
      return undefined
    },
    what,
    patienceMs,
  )
}

const authTypes = {
  ClobAuth: [
    { name: 'address', type: 'address' },
    { name: 'timestamp', type: 'string' },
    { name: 'nonce', type: 'uint256' },
    { name: 'message', type: 'string' },
  ],
}

const createKey = async (world: StormWorld, owner: PrivateKeyAccount): Promise<Credentials> => {
  const timestamp = String(Math.floor(Date.now() / 1_000))
  const signature = await owner.signTypedData({
    domain: { name: 'ClobAuthDomain', version: '1', chainId },
    types: authTypes,
    primaryType: 'ClobAuth',
    message: {
      address: owner.address,
      timestamp,
      nonce: 0n,
      message: 'This message attests that I control the given wallet',
    },
  })
  const headers = {
    poly_address: owner.address,
    poly_signature: signature,
    poly_timestamp: timestamp,
    poly_nonce: '0',
  }
  const { body } = await persist(world, 'a key', () =>
    world.ask(`${world.urls().polymarket.clob}/auth/api-key`, { method: 'POST', headers }),
  )
  return body as Credentials
}

const createSend =
  (world: StormWorld, owner: PrivateKeyAccount, { apiKey, secret, passphrase }: Credentials) =>
  (method: string, path: string, body?: unknown): Promise<FinalAnswer> => {
    const text = json(body)
    const hmacKey = Buffer.from(secret, 'base64url')
    return persist(world, `${method} ${path}`, () => {
      const timestamp = String(Math.floor(Date.now() / 1_000))
      const message = `${timestamp}${method}${path.split('?')[0]}${text}`
      const headers = {
        poly_address: owner.address,
        poly_api_key: apiKey,
        poly_passphrase: passphrase,
        poly_timestamp: timestamp,
        poly_signature: createHmac('sha256', hmacKey).update(message).digest('base64'),
      }
      return world.ask(`${world.urls().polymarket.clob}${path}`, { method, text, headers })
    })
  }

type Receipt = { status: Hex } | null

/** An account that signs and pays for itself: one nonce after the other, each sent again until it is mined. */
const ownExecute = (world: StormWorld, owner: PrivateKeyAccount) => {
  let nonce = 0
  return async ({ to, data }: Call): Promise<boolean> => {
    const fees = { maxFeePerGas: 10n ** 12n, maxPriorityFeePerGas: 10n ** 9n }
    const raw = await owner.signTransaction({
      type: 'eip1559',
      chainId,
      nonce,
      to,
      data,
      gas: 2_000_000n,
      ...fees,
    })
    nonce += 1
    const hash = keccak256(raw)
    const receipt = await eventually(
      async () => {
        // The node refuses what it has already; the receipt decides.
        await world.rpc.call('eth_sendRawTransaction', [raw]).catch(() => {})
        const found = await world.rpc.call('eth_getTransactionReceipt', [hash]).catch(() => null)
        return (found as Receipt) ?? undefined
      },
      'a transaction',
      patienceMs,
    )
    return receipt.status === '0x1'
  }
}

type RelayView = { state: string }

/** By the relayer. What became of a batch is read from the wallet's nonce: a batch that fails leaves it. */
const relayedExecute = (world: StormWorld, owner: PrivateKeyAccount, relayerKey: string) => {
  const wallet = walletOf(owner.address)
  const reads = createReads(world.rpc)
  const headers = { relayer_api_key: relayerKey, relayer_api_key_address: owner.address }
  let nonce = 0n

  const submit = (body: object) => {
    const { relayer } = world.urls().polymarket
    return world.ask(`${relayer}/submit`, { method: 'POST', headers, text: json(body) })
  }
  /** Whether the transaction has ended, as the relayer reports it. */
  const hasFailed = async (id: string): Promise<boolean> => {
    const { relayer } = world.urls().polymarket
    const answer = await world.ask(`${relayer}/v1/account/transactions/${id}`, { method: 'GET' })
    return (answer?.body as RelayView | undefined)?.state === 'STATE_FAILED'
  }
  const create = () =>
    eventually(
      async () => {
        await submit({ type: 'WALLET-CREATE', from: owner.address, to: contracts.walletFactory })
        return (await reads.isDeployed(wallet).catch(() => false)) || undefined
      },
      'a wallet',
      patienceMs,
    )
  const executeAll = async (calls: readonly Call[]): Promise<boolean> => {
    const { batch, signature } = await signBatch(owner, wallet, { nonce, deadline: farDeadline, calls })
    const list = batch.calls.map(({ target, value, data }) => ({ target, value: String(value), data }))
    const depositWalletParams = { depositWallet: wallet, deadline: String(farDeadline), calls: list }
    const body = { type: 'WALLET', from: owner.address, to: contracts.walletFactory, nonce: String(nonce) }
    let id: string | undefined
    return eventually(
      async () => {
        const isExecuted = await reads.walletNonce(wallet).then(
          (count) => count > nonce,
          () => false,
        )
        if (isExecuted) {
          nonce += 1n
          return { hasSucceeded: true }
        }
        if (id !== undefined) return (await hasFailed(id)) ? { hasSucceeded: false } : undefined
        const answer = await submit({ ...body, signature, depositWalletParams })
        if (answer?.status === 200) id = (answer.body as { transactionID: string }).transactionID
        return undefined
      },
      'a batch',
      patienceMs,
    ).then(({ hasSucceeded }) => hasSucceeded)
  }
  return { create, executeAll }
}

/** With money, approvals and shares of every market. */
export const openTrader = async (world: StormWorld, seed: number, number: number): Promise<StormTrader> => {
  const owner = privateKeyToAccount(keccak256(stringToHex(`storm ${seed} ${number}`)))
  const signatureType = number % 2 === 0 ? 0 : 3
  const address = signatureType === 0 ? owner.address : walletOf(owner.address)
  const calls = [
    ...approvalCalls(),
    approveAllCall(contracts.conditionalTokens, contracts.negRiskAdapter),
    ...markets.map(({ chain }) => splitCall(chain, stock)),
  ]
  await world.control('POST', '/credit', { wallet: address, amount: '100000' })
  let execute: StormTrader['execute']
  if (signatureType === 0) {
    await world.rpc.call('anvil_setBalance', [address, numberToHex(10n ** 22n)])
    execute = ownExecute(world, owner)
    for (const call of calls) await execute(call)
  } else {
    const { key } = await world.control<{ key: string }>('POST', '/relayer-key', { address: owner.address })
    const { create, executeAll } = relayedExecute(world, owner, key)
    await create()
    for (let at = 0; at < calls.length; at += 15) await executeAll(calls.slice(at, at + 15))
    execute = (call) => executeAll([call])
  }
  const credentials = await createKey(world, owner)
  return {
    owner,
    address,
    signatureType,
    random: { at: seed + number },
    apiKey: credentials.apiKey,
    orders: new Map(),
    open: [],
    changes: new Map(),
    send: createSend(world, owner, credentials),
    execute,
  }
}
