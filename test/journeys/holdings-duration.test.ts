/** How soon holdings follow the chains, and how long a chain that fails delays them. */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { freshGateway } from '../harness/gateway.ts'
import { receiveDeposits, silenceOneChain, stopOneChain } from './failing-chains.ts'
import { type World, worldOf } from './world.ts'

describe('holdings come in time', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  before(async () => {
    gateway = await freshGateway({ FAUCET_URL: 'off' }, { ownWorld: 'a chain stops' })
    world = await worldOf(gateway.world)
  })
  afterEach(() => world.heal())
  after(() => gateway?.[Symbol.asyncDispose]())

  test('an external deposit shows within two seconds', async () => {
    const slowestMs = await receiveDeposits({ url: gateway.url, world })
    assert.ok(slowestMs < 2_000, `${slowestMs} ms`)
  })

  test('an unreachable chain is reported within three seconds', async () => {
    const slowestMs = await stopOneChain({ url: gateway.url, world })
    assert.ok(slowestMs < 3_000, `${slowestMs} ms`)
  })

  test('a chain that is silent and never rejects delays no answer for longer than three seconds', async () => {
    const tookMs = await silenceOneChain({ url: gateway.url, world })
    assert.ok(tookMs < 3_000, `${tookMs} ms`)
  })
})
