/** Prices of tokens in the world: what is displayed, and what the pools would give. */
import { keccak256 } from 'viem/utils'
import { eventually } from '../harness/gateway.ts'
import { base, type World } from './world.ts'

const anyone = '0x00000000000000000000000000000000000000aa'
const word = (value: string) => value.replace(/^0x/, '').toLowerCase().padStart(64, '0')
const selectors = {
  factory: '0xc45a0155',
  getPair: '0xe6a43905',
  sync: '0xfff6cae9',
  getReserves: '0x0902f1ac',
}
const router = '0x4752ba5DBc23f44D87826276BF6Fd6b1C372aD24'
const oneToken = 10n ** 18n

export function poolOf(world: World, symbol: string) {
  const token = world.tokenOn(base, symbol)
  const read = async (to: string, data: string) =>
    (await world.rpc('eth_call', [{ to, data }, 'latest'])) as string
  const pair = (async () => {
    const factory = `0x${(await read(router, selectors.factory)).slice(-40)}`
    const found = await read(factory, selectors.getPair + word(token) + word(world.usdc))
    return `0x${found.slice(-40)}`
  })()

  /** Gives the pool as many tokens as it has at this price, and makes it count them. */
  const setPool = async (dollars: number): Promise<void> => {
    const at = await pair
    const slot = keccak256(`0x${word(at)}${word('0')}`)
    await world.rpc('anvil_setBalance', [anyone, '0xde0b6b3a7640000'])
    await world.rpc('anvil_impersonateAccount', [anyone])
    // A trade may come between.
    await eventually(async () => {
      const units = ((await world.usdcOf(at)) * oneToken) / BigInt(Math.round(dollars * 1e6))
      await world.rpc('anvil_setStorageAt', [token, slot, `0x${word(units.toString(16))}`])
      await world.rpc('eth_sendTransaction', [{ from: anyone, to: at, data: selectors.sync }])
      const reserves = await read(at, selectors.getReserves)
      const stored = [reserves.slice(2, 66), reserves.slice(66, 130)].map((each) => BigInt(`0x${each}`))
      return stored.includes(units) && (await world.balance(base, at, token)) === units ? true : undefined
    }, 'the pool has counted its tokens')
  }
  const display = (dollars: number) => world.price({ symbol, price_usd: String(dollars) })
  return {
    token,
    setPool,
    display,
    /** The whole market moves: what is displayed, and the pool. */
    async move(dollars: number): Promise<void> {
      await setPool(dollars)
      await display(dollars)
    },
  }
}
