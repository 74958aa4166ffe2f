/** Days of a schedule, which the control port of the world advances: tokens, tasks and limits stay on real time. */
import { test } from 'node:test'
import { freshGateway, newAgent } from '../harness/gateway.ts'
import { operationsOf } from '../proof/support/contracts.ts'
import { httpDoor } from '../proof/support/http-door.ts'
import { liveSchedule } from './schedule-journey.ts'

test('a schedule runs each day that the world advances, says what it skipped, and ends', async () => {
  await using gateway = await freshGateway({}, { ownWorld: 'days pass in it' })
  const door = httpDoor(await operationsOf(gateway.url), gateway.url)
  await liveSchedule(gateway, await newAgent(gateway.url), door)
})
