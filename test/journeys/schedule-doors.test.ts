/** The same life of a schedule through the command line, and through tools of MCP. */
import { test } from 'node:test'
import { freshGateway, newAgent } from '../harness/gateway.ts'
import { mcpDoor } from '../mcp/mcp-door.ts'
import { cliDoor } from '../proof/support/client-doors.ts'
import { operationsOf } from '../proof/support/contracts.ts'
import { liveSchedule } from './schedule-journey.ts'

test('a schedule lives by the command line, and by tools of MCP', async (t) => {
  await using gateway = await freshGateway({}, { ownWorld: 'days pass in it' })
  const doors = {
    'the command line': cliDoor(gateway.url),
    MCP: mcpDoor(await operationsOf(gateway.url), gateway.url),
  }
  for (const [name, door] of Object.entries(doors))
    await t.test(name, async () => liveSchedule(gateway, await newAgent(gateway.url), door))
})
