import { insertTriggerOrders } from '#engines/trigger-orders/store.ts'
import { triggerRowOf } from '#features/hooks/trigger-row.ts'
import type { Chain } from '#kernel/money/chains.ts'
import { type EngineFixture, newUser } from './engine-fixture.ts'

/** A stop and a target that sell what a swap bought. */
export async function leaveHookPair({ admin }: EngineFixture, userId: string) {
  const group = newUser()
  const address = `0x${newUser().replaceAll('-', '').padStart(40, '0')}`
  // Ids of one millisecond have no order: here the stop has the greater one.
  const [targetId, stopId] = [newUser(), newUser()].sort() as [string, string]
  const hookOf = (id: string, type: 'stop_loss' | 'take_profit') =>
    triggerRowOf({
      id,
      userId,
      chain: { id: '8453', usdc: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913' } as Chain,
      token: { symbol: 'WETH', address },
      leg: { type, fraction: '0.1', price: null, sell: '1' },
      reference: '2000',
      referenceName: 'entry',
      mark: '2000',
      slippageBps: 100,
      group,
      expiresAt: null,
      units: 5_000_000n,
      isLot: true,
      at: new Date(),
    })
  const [stop, target] = [hookOf(stopId, 'stop_loss'), hookOf(targetId, 'take_profit')]
  await admin.transaction((tx) => insertTriggerOrders(tx, [stop, target]))
  return { stop, target }
}
