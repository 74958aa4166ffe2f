/** A Polygon with the contracts of the prediction market, and accounts that trade on it. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  concatHex,
  encodeFunctionData,
  encodePacked,
  type Hex,
  keccak256,
  numberToHex,
  parseAbi,
  size,
  stringToHex,
  zeroHash,
} from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { type Anvil, startAnvil } from '#world/evm/anvil.ts'
import { artifact, multicall3Bytecode } from '#world/evm/artifact.ts'
import { multicall3 } from '#world/evm/chains.ts'
import type { Rpc } from '#world/evm/rpc.ts'
import { addressOf } from '#world/polymarket/chain/accounts.ts'
import { chainId, contracts } from '#world/polymarket/chain/addresses.ts'
import {
  approvalCalls,
  deployWalletCall,
  executeBatchCall,
  executeSafeCall,
} from '#world/polymarket/chain/calls.ts'
import type {
  Address,
  Call,
  ChainMarket,
  ExchangeName,
  Fill,
  Order,
  Reads,
  Sender,
  Side,
  SignedOrder,
  WorldMoney,
} from '#world/polymarket/chain/chain-terms.ts'
import { walletOf } from '#world/polymarket/chain/ids.ts'
import { placeContracts } from '#world/polymarket/chain/place.ts'
import { createReads } from '#world/polymarket/chain/reads.ts'
import { createSender } from '#world/polymarket/chain/sender.ts'
import { safeTransactionDigest } from '#world/polymarket/chain/wallets.ts'
import { createWorldMoney } from '#world/polymarket/chain/world-money.ts'
import { oncePerProcess } from '../../../test/harness/once-per-process.ts'

export type Polygon = { rpc: Rpc; sender: Sender; reads: Reads; money: WorldMoney } & AsyncDisposable

/** A node as the world starts it, with what the contracts need and nothing else: a world takes ten times as long. */
export const openNode = async (): Promise<Anvil & AsyncDisposable> => {
  const folder = mkdtempSync(join(tmpdir(), 'portico-polygon-'))
  const files = { pidFile: join(folder, 'pid'), exitFile: join(folder, 'exit.json') }
  const node = await startAnvil({ chainId: String(chainId), ...files })
  const multicall = await node.rpc.call('eth_call', [{ data: multicall3Bytecode() }, 'latest'])
  await node.rpc.batch([
    { method: 'anvil_setCode', params: [contracts.usdce, artifact('Token').runtime] },
    { method: 'anvil_setCode', params: [contracts.usdc, artifact('LocalUsdc').runtime] },
    { method: 'anvil_setCode', params: [multicall3, multicall] },
  ])
  await placeContracts(node.rpc)
  return {
    ...node,
    [Symbol.asyncDispose]: async () => {
      node.rpc.close()
      await node.child.stop('SIGKILL')
      rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
    },
  }
}

export const openPolygon = async (): Promise<Polygon> => {
  const { rpc, [Symbol.asyncDispose]: end } = await openNode()
  const sender = createSender(rpc)
  const money = createWorldMoney(rpc, sender)
  return { rpc, sender, reads: createReads(rpc), money, [Symbol.asyncDispose]: end }
}

/** One for the files of a process: their markets and accounts are their own. */
export const sharedPolygon = oncePerProcess(openPolygon)

const typesOf = (fields: string) =>
  fields.split(',').map((field) => ({ type: field.split(' ')[0]!, name: field.split(' ')[1]! }))

const orderFields = typesOf(
  'uint256 salt,address maker,address signer,uint256 tokenId,uint256 makerAmount,uint256 takerAmount,uint8 side,uint8 signatureType,uint256 timestamp,bytes32 metadata,bytes32 builder',
)
const orderTypeText = `Order(${orderFields.map(({ type, name }) => `${type} ${name}`).join()})`
const nestedFields = typesOf(
  'Order contents,string name,string version,uint256 chainId,address verifyingContract,bytes32 salt',
)
const callFields = typesOf('address target,uint256 value,bytes data')
const batchFields = typesOf('address wallet,uint256 nonce,uint256 deadline,Call[] calls')
const domainFields = typesOf('string name,string version,uint256 chainId,address verifyingContract')

/** Signs for a wallet as its owner's client does (ERC-7739). */
const signNested = async (owner: PrivateKeyAccount, order: Order, domain: OrderDomain): Promise<Hex> => {
  const own = { name: 'DepositWallet', version: '1', chainId: BigInt(chainId), salt: zeroHash }
  const signature = await owner.signTypedData({
    domain,
    types: { TypedDataSign: nestedFields, Order: orderFields },
    primaryType: 'TypedDataSign',
    message: { contents: order, ...own, verifyingContract: order.maker },
  })
  const separator = hashStructOf('EIP712Domain', domainFields, domain)
  const contents = hashStructOf('Order', orderFields, order)
  const length = numberToHex(orderTypeText.length, { size: 2 })
  return concatHex([signature, separator, contents, stringToHex(orderTypeText), length])
}

type OrderDomain = { name: string; version: string; chainId: number; verifyingContract: Address }

/** viem exports the hash of a message alone: this is a struct's, from which it is made. */
const hashStructOf = (name: string, fields: typeof orderFields, values: object): Hex => {
  const text = `${name}(${fields.map((each) => `${each.type} ${each.name}`).join()})`
  const word = ({ type, name: key }: { type: string; name: string }): Hex => {
    const value = (values as Record<string, unknown>)[key]
    if (type === 'string') return keccak256(stringToHex(String(value)))
    return numberToHex(BigInt(value as bigint), { size: 32 })
  }
  return keccak256(concatHex([keccak256(stringToHex(text)), ...fields.map(word)]))
}

export const domainOf = (exchange: ExchangeName): OrderDomain => ({
  name: 'Polymarket CTF Exchange',
  version: exchange === 'exchangeV3' ? '3' : '2',
  chainId,
  verifyingContract: contracts[exchange],
})

export type Trader = {
  address: Address
  owner: PrivateKeyAccount
  signatureType: number
  /** In the name of the trader's account. */
  run: (calls: readonly Call[]) => Promise<void>
}

let salt = 0n
const million = 1_000_000n

/** An order for `shares` at a price in thousandths. */
export const orderOf = async (
  trader: Omit<Trader, 'run'>,
  exchange: ExchangeName,
  { side, tokenId, shares, price }: { side: Side; tokenId: bigint; shares: bigint; price: bigint },
): Promise<SignedOrder> => {
  salt += 1n
  const cash = (shares * price) / 1_000n
  const order: Order = {
    salt,
    maker: trader.address,
    signer: trader.signatureType === 3 ? trader.address : trader.owner.address,
    tokenId,
    makerAmount: side === 0 ? cash : shares,
    takerAmount: side === 0 ? shares : cash,
    side,
    signatureType: trader.signatureType,
    timestamp: 1_700_000_000_000n,
    metadata: zeroHash,
    builder: zeroHash,
  }
  const domain = domainOf(exchange)
  const signature =
    trader.signatureType === 3
      ? await signNested(trader.owner, order, domain)
      : await trader.owner.signTypedData({
          domain,
          types: { Order: orderFields },
          primaryType: 'Order',
          message: order,
        })
  return { ...order, signature }
}

export const fillOf = (order: SignedOrder, shares: bigint, cash: bigint, fee = 0n): Fill => ({
  order,
  shares,
  cash,
  fee,
})

export const signBatch = async (
  owner: PrivateKeyAccount,
  wallet: Address,
  { nonce, deadline, calls }: { nonce: bigint; deadline: bigint; calls: readonly Call[] },
) => {
  const list = calls.map(({ to, data, value = 0n }) => ({ target: to, value, data }))
  const batch = { wallet, nonce, deadline, calls: list }
  const signature = await owner.signTypedData({
    domain: { name: 'DepositWallet', version: '1', chainId, verifyingContract: wallet },
    types: { Batch: batchFields, Call: callFields },
    primaryType: 'Batch',
    message: batch,
  })
  return { batch, signature }
}

const farDeadline = 10n ** 11n

/** A deployed deposit wallet with money and the approvals of trading. */
export const walletTrader = async ({ sender, reads, money }: Polygon): Promise<Trader> => {
  const owner = privateKeyToAccount(generatePrivateKey())
  const address = walletOf(owner.address)
  await sender.send('relayer', deployWalletCall(owner.address))
  const run = async (calls: readonly Call[]) => {
    const nonce = await reads.walletNonce(address)
    const { batch, signature } = await signBatch(owner, address, { nonce, deadline: farDeadline, calls })
    await sender.send('relayer', executeBatchCall(batch, signature))
  }
  await money.mintPusd(address, 1_000n * million)
  await run(approvalCalls())
  return { address, owner, signatureType: 3, run }
}

const multiSendAbi = parseAbi(['function multiSend(bytes transactions)'])
const packCall = ({ to, data, value = 0n }: Call): Hex =>
  encodePacked(['uint8', 'address', 'uint256', 'uint256', 'bytes'], [0, to, value, BigInt(size(data)), data])

/** A wallet from before deposit wallets. */
export const safeTrader = async ({ sender, reads, money }: Polygon): Promise<Trader> => {
  const owner = privateKeyToAccount(generatePrivateKey())
  const address = await money.placeSafe(owner.address)
  const run = async (calls: readonly Call[]) => {
    const transactions = concatHex(calls.map(packCall))
    const data = encodeFunctionData({
      abi: multiSendAbi,
      functionName: 'multiSend',
      args: [transactions],
    })
    const nonce = await reads.safeNonce(address)
    const transaction = {
      safe: address,
      to: contracts.multiSend,
      value: 0n,
      data,
      operation: 1,
      nonce,
    } as const
    const digest = `0x${Buffer.from(safeTransactionDigest(transaction)).toString('hex')}` as const
    const signed = await owner.signMessage({ message: { raw: digest } })
    const v = Number.parseInt(signed.slice(130), 16) + 4
    const signature = `${signed.slice(0, 130)}${v.toString(16)}` as Hex
    await sender.send('relayer', executeSafeCall(transaction, signature))
  }
  await money.mintPusd(address, 1_000n * million)
  await run(approvalCalls())
  return { address, owner, signatureType: 2, run }
}

/** An account that signs and pays for itself. */
export const ownTrader = async ({ rpc, money }: Polygon): Promise<Trader> => {
  const owner = privateKeyToAccount(generatePrivateKey())
  await rpc.call('anvil_setBalance', [owner.address, numberToHex(10n ** 21n)])
  let nonce = 0
  const run = async (calls: readonly Call[]) => {
    for (const { to, data } of calls) {
      const fees = { maxFeePerGas: 10n ** 12n, maxPriorityFeePerGas: 10n ** 9n }
      const unsigned = { type: 'eip1559', chainId, nonce, to, data, gas: 2_000_000n, ...fees } as const
      nonce += 1
      const raw = await owner.signTransaction(unsigned)
      const { status, transactionHash } = (await rpc.call('eth_sendRawTransactionSync', [raw])) as {
        status: Hex
        transactionHash: Hex
      }
      if (status !== '0x1') throw new Error(`${transactionHash} was reverted.`)
    }
  }
  await money.mintPusd(owner.address, 1_000n * million)
  await run(approvalCalls())
  return { address: owner.address, owner, signatureType: 0, run }
}

export const keyOf = (name: string): Hex => keccak256(stringToHex(name))
export const operator = addressOf('operator')

export const sharesOf = ({ reads }: Polygon, trader: Trader, market: ChainMarket) =>
  reads.shares(trader.address, market.outcomeIds)
