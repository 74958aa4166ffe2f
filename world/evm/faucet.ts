import { randomBytes } from 'node:crypto'
import {
  decodeEventLog,
  decodeFunctionResult,
  encodeFunctionData,
  type Hex,
  keccak256,
  numberToHex,
  stringToHex,
  toEventSelector,
  zeroAddress,
} from 'viem'
import { HttpError } from '#world/router.ts'
import { artifact } from './artifact.ts'
import { type Address, faucetContract, operator, type WorldChain } from './chains.ts'
import type { EvmNode } from './node.ts'
import { sendAndConfirm } from './seed-steps.ts'

export type FaucetGrant = { token: string; symbol: string; amountUnits: bigint }
export type GrantReceipt = { credited: FaucetGrant[]; txHash: string }

type LoggedGrant = { kind: number; token: Address; amount: bigint }
type FundedEvent = { request: Hex; gifts: readonly LoggedGrant[] }

const { abi } = artifact('Faucet')
const fundedTopic = toEventSelector('Funded(bytes32,address,bytes32,(uint8,address,uint256)[])')
const kinds = { native: 0, minted: 1, wrapped: 2 }

const kindOf = (chain: WorldChain, address: string): number => {
  if (address === zeroAddress) return kinds.native
  const token = chain.tokens.find((each) => each.address === address)
  return token?.kind === 'wrapped' ? kinds.wrapped : kinds.minted
}

const symbolOf = (chain: WorldChain, address: Address): string => {
  if (address === zeroAddress) return chain.native.symbol
  return chain.tokens.find((each) => each.address === address)?.symbol ?? address
}

const findEarlierGrant = async (
  node: EvmNode,
  id: Hex,
): Promise<(GrantReceipt & { request: Hex }) | undefined> => {
  const { chain } = node
  const call = { to: faucetContract, data: encodeFunctionData({ abi, functionName: 'given', args: [id] }) }
  const data = (await node.rpc().call('eth_call', [call, 'latest'])) as Hex
  if (!decodeFunctionResult({ abi, functionName: 'given', data })) return undefined
  const [log] = await node.events(faucetContract, [fundedTopic, id])
  if (!log) throw new Error('The faucet has used this id, but its event is missing.')
  const { args } = decodeEventLog({ abi, data: log.data, topics: log.topics })
  const { request, gifts } = args as unknown as FundedEvent
  const credited = gifts.map(({ token, amount }) => ({
    token,
    symbol: symbolOf(chain, token),
    amountUnits: amount,
  }))
  return { credited, txHash: log.transactionHash, request }
}

/** Serialises per chain: the look-up of an id and its use must not interleave. */
const queues = new Map<string, Promise<unknown>>()

const grantOnce = async (node: EvmNode, to: Address, grants: FaucetGrant[], name: string | undefined) => {
  const id =
    name === undefined ? (`0x${randomBytes(32).toString('hex')}` as const) : keccak256(stringToHex(name))
  const amounts = grants.map(({ token, amountUnits }) => [token, String(amountUnits)])
  const request = keccak256(stringToHex(JSON.stringify([to.toLowerCase(), amounts])))
  const before = name === undefined ? undefined : await findEarlierGrant(node, id)
  if (before && before.request !== request) {
    throw new HttpError(409, `id ${name} has already been used for another grant.`)
  }
  if (before) return before
  const { chain } = node
  const list = grants.map(({ token, amountUnits }) => ({
    kind: kindOf(chain, token),
    token,
    amount: amountUnits,
  }))
  const data = encodeFunctionData({ abi, functionName: 'fund', args: [id, request, to, list] })
  const transaction = { from: operator, to: faucetContract, data, gas: numberToHex(2_000_000) }
  return { credited: grants, txHash: await sendAndConfirm(node.rpc(), transaction) }
}

export const sendEvmGrant = (
  node: EvmNode,
  to: Address,
  grants: FaucetGrant[],
  id: string | undefined,
): Promise<GrantReceipt> => {
  const pending = (queues.get(node.chain.id) ?? Promise.resolve())
    .catch(() => {})
    .then(() => grantOnce(node, to, grants, id))
  queues.set(node.chain.id, pending)
  return pending
}
