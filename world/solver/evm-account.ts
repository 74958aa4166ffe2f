import {
  encodeFunctionData,
  keccak256,
  type Log,
  numberToHex,
  parseAbi,
  parseEventLogs,
  stringToHex,
  toEventSelector,
} from 'viem'
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { artifact } from '#world/evm/artifact.ts'
import {
  type Address,
  depository,
  faucetContract,
  operator,
  relayRouters,
  type WorldChain,
} from '#world/evm/chains.ts'
import type { Rpc } from '#world/evm/rpc.ts'
import type { ChainAccount, Payment, Scan } from './chain-account.ts'
import { type Currency, type SolverChain, zeroAddress } from './chains.ts'
import { unitsOfUsd } from './money.ts'
import type { Prices } from './prices.ts'
import type { Attempt, Deposit, Hex } from './request.ts'
import type { Store } from './store.ts'

const inventoryUsd = 2_000_000n * 10n ** 18n
/** Blocks that are read again because they may have changed. */
const changedBlocksMax = 128
const receiptPolls = 200
const receiptPollMs = 50

const tokenAbi = parseAbi([
  'function transfer(address to, uint256 amount) returns (bool)',
  'function balanceOf(address owner) view returns (uint256)',
])

export type RpcLog = { transactionHash: Hex; blockNumber: Hex; data: Hex; topics: [Hex] }
type Receipt = { status: Hex; blockNumber: Hex } | null
type Call = { to: Address; data?: Hex; value: bigint }

type Contract = { address: Address; runtime: () => Hex }

/** Who pays, where deposits are made, and how a protocol writes them. */
export type Desk = {
  account: PrivateKeyAccount
  inventoryId: Hex
  /** Takes deposits. */
  contract: Contract
  /** Called by quotes. */
  otherContracts?: readonly Contract[]
  depositTopics: readonly Hex[]
  readDeposit: (log: RpcLog) => { id: Hex; from?: string; token: string; amount: bigint } | undefined
  /** The call of a payment that the contract makes; absent where deposits go to the account itself. */
  release?: (payment: Payment) => Call
}

export const relayDesk: Desk = {
  account: privateKeyToAccount(keccak256(stringToHex('portico local world: solver'))),
  inventoryId: keccak256(stringToHex('solver inventory')),
  contract: { address: depository, runtime: () => artifact('Depository').runtime },
  otherContracts: Object.values(relayRouters).flatMap(({ router, approvalProxy }) => [
    { address: router, runtime: () => artifact('RelayRouter').runtime },
    { address: approvalProxy, runtime: () => artifact('RelayApprovalProxy').runtime },
  ]),
  depositTopics: [
    toEventSelector('RelayNativeDeposit(address,uint256,bytes32)'),
    toEventSelector('RelayErc20Deposit(address,address,uint256,bytes32)'),
  ],
  readDeposit: (log) => {
    const [event] = parseEventLogs({ abi: artifact('Depository').abi, logs: [log as unknown as Log] })
    if (!event) return undefined
    const { from, token, amount, id } = event.args as {
      from: string
      token?: string
      amount: bigint
      id: Hex
    }
    return { id, from, token: token ?? zeroAddress, amount }
  },
  release: ({ currency, units, to }) => {
    const { abi } = artifact('Depository')
    const args = [currency, to, BigInt(units)]
    return { to: depository, data: encodeFunctionData({ abi, functionName: 'release', args }), value: 0n }
  },
}

export type EvmAccountDeps = {
  desk: Desk
  chain: SolverChain & { evm: WorldChain }
  rpc: Rpc
  store: Store
  prices: Prices
  nowMs: () => number
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Rejects when the node is down, as it must not be mistaken for a revert. */
const isRevert = (error: Error): boolean => /revert|insufficient funds|out of gas/i.test(error.message)

const callOf = ({ release }: Desk, payment: Payment): Call => {
  const { source, currency, units, to } = payment
  const [receiver, amount] = [to as Address, BigInt(units)]
  if (source === 'depository' && release) return release(payment)
  if (currency === zeroAddress) return { to: receiver, value: amount }
  const data = encodeFunctionData({ abi: tokenAbi, functionName: 'transfer', args: [receiver, amount] })
  return { to: currency as Address, data, value: 0n }
}

const prepareOnce = async ({ desk, chain, rpc, prices }: EvmAccountDeps): Promise<void> => {
  const { abi } = artifact('Faucet')
  const givenCall = encodeFunctionData({ abi, functionName: 'given', args: [desk.inventoryId] })
  const contracts = [desk.contract, ...(desk.otherContracts ?? [])]
  const [given, ...codes] = (await rpc.batch([
    { method: 'eth_call', params: [{ to: faucetContract, data: givenCall }, 'latest'] },
    ...contracts.map(({ address }) => ({ method: 'eth_getCode', params: [address, 'latest'] })),
  ])) as Hex[]
  // A world of an earlier version lacks some of the contracts.
  const missing = contracts.filter((_, at) => codes[at] === '0x')
  if (missing.length > 0)
    await rpc.batch(
      missing.map(({ address, runtime }) => ({ method: 'anvil_setCode', params: [address, runtime()] })),
    )
  if (BigInt(given ?? '0x0') === 1n) return
  const kinds = { usdc: 1, minted: 1, wrapped: 2 }
  const gift = async (currency: Currency, kind: number) => {
    const price = await prices.requirePrice(currency)
    return { kind, token: currency.address, amount: unitsOfUsd(inventoryUsd, currency, price) }
  }
  const tokens = chain.tokens.map((token, index) =>
    gift(token, kinds[chain.evm.tokens[index]?.kind ?? 'minted']),
  )
  const gifts = await Promise.all([gift(chain.native, 0), ...tokens])
  const args = [desk.inventoryId, desk.inventoryId, desk.account.address, gifts]
  const data = encodeFunctionData({ abi, functionName: 'fund', args })
  const transaction = { from: operator, to: faucetContract, data, gas: numberToHex(2_000_000) }
  const hash = await rpc.call('eth_sendTransaction', [transaction])
  for (let polls = 0; polls < receiptPolls; polls += 1) {
    if (await rpc.call('eth_getTransactionReceipt', [hash])) return
    await pause(receiptPollMs)
  }
  throw new Error(`The inventory of ${chain.displayName} did not arrive.`)
}

/** The index within its transaction makes the key: it does not change when the transaction is mined again. */
const depositsOf = (desk: Desk, chainId: number, logs: readonly RpcLog[], nowMs: number): Deposit[] => {
  const counts = new Map<string, number>()
  return logs.flatMap((log) => {
    const place = counts.get(log.transactionHash) ?? 0
    counts.set(log.transactionHash, place + 1)
    const read = desk.readDeposit(log)
    if (!read) return []
    const { id, from = '', token, amount } = read
    return {
      key: `${chainId}:${log.transactionHash}#${place}`,
      requestId: id,
      chainId,
      from: from.toLowerCase(),
      currency: token.toLowerCase(),
      units: String(amount),
      txHash: log.transactionHash,
      block: Number(log.blockNumber),
      seenMs: nowMs,
    }
  })
}

export const createEvmAccount = (deps: EvmAccountDeps): ChainAccount => {
  const { desk, chain, rpc, store, nowMs } = deps
  const { account } = desk
  const cursorName = `scanned:${chain.id}`
  let preparing: Promise<void> | undefined
  let lastNonce: number | undefined
  let lastHead = ''

  const nonceAt = async (): Promise<number> =>
    Number(await rpc.call('eth_getTransactionCount', [account.address, 'latest']))

  const estimateGas = async ({ to, data, value }: Call): Promise<bigint> => {
    const call = { from: account.address, to, data, value: numberToHex(value) }
    return BigInt((await rpc.call('eth_estimateGas', [call])) as Hex)
  }

  const scan = async (): Promise<Scan> => {
    const head = (await rpc.call('eth_getBlockByNumber', ['latest', false])) as { number: Hex; hash: Hex }
    const number = Number(head.number)
    const before = store.setting(cursorName)
    const unread = { deposits: [], head: number, readFrom: number + 1, cursor: before ?? '' }
    if (head.hash === lastHead) return unread
    const scanned = Number(before ?? 0)
    // A chain that was reset is shorter than the stored block.
    const readFrom = scanned > number ? 0 : Math.max(0, scanned + 1 - changedBlocksMax)
    const filter = {
      address: desk.contract.address,
      fromBlock: numberToHex(readFrom),
      toBlock: head.number,
      topics: [desk.depositTopics],
    }
    const logs = (await rpc.call('eth_getLogs', [filter])) as RpcLog[]
    return {
      deposits: depositsOf(desk, chain.id, logs, nowMs()),
      head: number,
      readFrom,
      cursor: `${number}:${head.hash}`,
    }
  }

  return {
    prepare: () => {
      preparing ??= prepareOnce(deps).catch((error: Error) => {
        preparing = undefined
        throw error
      })
      return preparing
    },
    lookupTables: () => [],
    balance: async ({ address }) => {
      if (address === zeroAddress)
        return BigInt((await rpc.call('eth_getBalance', [account.address, 'latest'])) as Hex)
      const data = encodeFunctionData({ abi: tokenAbi, functionName: 'balanceOf', args: [account.address] })
      return BigInt((await rpc.call('eth_call', [{ to: address, data }, 'latest'])) as Hex)
    },
    scan,
    confirmScan: ({ cursor }) => {
      const [number = '', hash = ''] = cursor.split(':')
      if (hash === '') return
      lastHead = hash
      store.saveSetting(cursorName, number)
    },
    simulate: async (payment) => {
      try {
        await estimateGas(callOf(desk, payment))
        return true
      } catch (error) {
        if (isRevert(error as Error)) return false
        throw error
      }
    },
    sign: async (payment): Promise<Attempt> => {
      const call = callOf(desk, payment)
      const gas = ((await estimateGas(call)) * 3n) / 2n
      const gasPrice = BigInt((await rpc.call('eth_gasPrice')) as Hex)
      lastNonce ??= store.lastNonce(chain.id) ?? -1
      const nonce = Math.max(await nonceAt(), lastNonce + 1)
      lastNonce = nonce
      const raw = await account.signTransaction({
        type: 'eip1559',
        chainId: chain.id,
        nonce,
        gas,
        // Far above the price of the next block, so that it is never too low.
        maxFeePerGas: gasPrice * 10n + 10n ** 9n,
        maxPriorityFeePerGas: 10n ** 9n,
        ...call,
      })
      return { raw, hash: keccak256(raw), nonce }
    },
    // The node rejects bytes that it has already; they are looked up.
    send: async ({ raw }) => {
      await rpc.call('eth_sendRawTransaction', [raw]).catch((error: Error) => {
        if (!/already|known|nonce too low/i.test(error.message)) throw error
      })
    },
    stateOf: async ({ hash, nonce = 0 }) => {
      const used = await nonceAt()
      const receipt = (await rpc.call('eth_getTransactionReceipt', [hash])) as Receipt
      if (receipt)
        return receipt.status === '0x1'
          ? { state: 'mined', block: Number(receipt.blockNumber) }
          : { state: 'reverted' }
      // Only these bytes can have used the nonce, so the node has dropped an old receipt.
      return used > nonce ? { state: 'mined', block: 0 } : { state: 'pending' }
    },
  }
}
