import type { Rpc } from '#world/evm/rpc.ts'
import { type BridgeAsset, bridgeAssets } from './bridge.ts'
import { addressOf } from './chain/accounts.ts'
import { contracts } from './chain/addresses.ts'
import type { Call, Sender } from './chain/chain-terms.ts'
import { accountWei } from './chain/place.ts'
import { mintCall, mintPusdCall } from './chain/world-money.ts'
import { addressIn, type Log, transferTopic } from './chain-index.ts'
import type { Engine } from './machine.ts'
import { nextState, sendStored } from './sent.ts'
import type { Carry } from './state.ts'
import { isUnderWay } from './venue.ts'

/** Carries what is sent to the addresses of the bridge: what has arrived there is paid out where it is wanted. */

export type BridgeChain = { id: string; rpc: Rpc; sender: Sender }

/** Blocks that are read again because a reorganisation may have changed them. */
const changedBlocksMax = 128
const hex = (value: number): string => `0x${value.toString(16)}`

const isTaken = ({ kind }: Carry['bridge'], { address }: BridgeAsset): boolean =>
  (kind === 'withdraw') === (address === contracts.pusd)

/** A transfer keeps its key when its transaction is mined again in another block. */
const carriesOf = (engine: Engine, { id }: BridgeChain, logs: readonly Log[]): Carry[] => {
  const { bridges, carries } = engine.venue.state
  const places = new Map<string, number>()
  return logs.flatMap(({ address, topics, data, transactionHash }) => {
    const to = addressIn(topics[2])
    const bridge = bridges.get(to)
    const asset = bridgeAssets.find((each) => each.chainId === id && each.address.toLowerCase() === address)
    const transfer = `${id} ${transactionHash} ${address} ${to}`
    const place = places.get(transfer) ?? 0
    places.set(transfer, place + 1)
    const key = `${transfer} ${place}`
    const units = BigInt(data)
    if (!bridge || !asset || !isTaken(bridge, asset) || carries.has(key) || units < asset.minUnits) return []
    return [
      {
        key,
        bridge,
        chainId: id,
        token: asset.address,
        units: String(units),
        originHash: transactionHash,
        createdMs: engine.nowMs(),
        state: 'STATE_NEW' as const,
        hash: '',
        attempt: null,
      },
    ]
  })
}

const scan = async (engine: Engine, chain: BridgeChain): Promise<void> => {
  const { bridges, bridgeBlocks } = engine.venue.state
  const head = Number(await chain.rpc.call('eth_blockNumber'))
  const known = bridgeBlocks.get(chain.id)
  if (known === head) return
  const from = known === undefined || known > head ? 0 : Math.max(0, known + 1 - changedBlocksMax)
  const recipients = [...bridges.keys()].map((address) => `0x${address.slice(2).padStart(64, '0')}`)
  const filter = {
    address: bridgeAssets.filter(({ chainId }) => chainId === chain.id).map(({ address }) => address),
    fromBlock: hex(from),
    toBlock: hex(head),
    topics: [transferTopic, null, recipients],
  }
  const logs = (await chain.rpc.call('eth_getLogs', [filter])) as Log[]
  const carries = carriesOf(engine, chain, logs)
  engine.submit({ kind: 'bridgeScanned', chainId: chain.id, block: head, carries })
}

const callOf = ({ bridge: { token, recipient }, units }: Carry): Call =>
  token === contracts.pusd
    ? mintPusdCall(recipient, BigInt(units))
    : mintCall(token, recipient, BigInt(units))

const advance = async (engine: Engine, { rpc, sender }: BridgeChain, carry: Carry): Promise<void> => {
  const change = (fields: Partial<Carry>) =>
    void engine.submit({ kind: 'carryChange', key: carry.key, change: fields })
  if (carry.state !== 'STATE_NEW') {
    const state = await nextState(sender, carry)
    if (state) change({ state: state === 'STATE_FAILED' ? 'STATE_NEW' : state })
    return
  }
  const admin = addressOf('admin')
  if (BigInt(String(await rpc.call('eth_getBalance', [admin, 'latest']))) === 0n)
    await rpc.call('anvil_setBalance', [admin, `0x${accountWei.toString(16)}`])
  const call = callOf(carry)
  // A paused ramp holds the money back until it is opened.
  if ((await sender.simulate(admin, call)) === undefined)
    await sendStored({ engine, sender, account: 'admin' }, call, change)
}

/** A chain that does not run is asked again, and paid on when it runs. */
const isUnreachable = (error: unknown): boolean => (error as { code?: string }).code === 'ECONNRESET'

export const carryAll = async (engine: Engine, chains: readonly BridgeChain[]): Promise<void> => {
  if (engine.venue.state.bridges.size === 0) return
  for (const chain of chains)
    try {
      await scan(engine, chain)
      for (const carry of engine.venue.state.carries.values())
        if (carry.bridge.chainId === chain.id && isUnderWay(carry)) await advance(engine, chain, carry)
    } catch (error) {
      if (!isUnreachable(error)) throw error
    }
}
