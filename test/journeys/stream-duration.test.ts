/** How soon another instance completes the task of one that was killed. */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { freshGateway } from '../harness/gateway.ts'
import { killInstanceOfTask } from './killed-instance.ts'
import { type World, worldOf } from './world.ts'

describe('a task of a killed instance', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  before(async () => {
    gateway = await freshGateway()
    world = await worldOf(gateway.world)
  })
  afterEach(() => world.heal())
  after(() => gateway?.[Symbol.asyncDispose]())

  test('is completed by another one within the lease and a second, with some margin', async () => {
    const tookMs = await killInstanceOfTask(gateway, world)
    assert.ok(tookMs < 6_000, `${tookMs} ms`)
  })
})
