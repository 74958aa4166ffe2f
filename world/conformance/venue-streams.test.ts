import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { WebSocketTransport } from '@nktkas/hyperliquid'
import { userAt } from './venue/in-memory-venue.ts'
import { eventually, type RunningVenue, resetRefusedUpgrades, startVenue } from './venue/venue.ts'

let venue: RunningVenue
before(async () => {
  venue = await startVenue(['--tick-ms', '100'])
})
after(() => venue?.close())

const settings = (limits: Record<string, number>) => venue.control('POST', '/settings', limits)

/** Whether the venue accepts one more connection. */
const opened = (): Promise<WebSocket | undefined> =>
  new Promise((resolve) => {
    const socket = new WebSocket(venue.wsUrl)
    socket.onopen = () => resolve(socket)
    socket.onerror = () => resolve(undefined)
  })

test('a page of another origin that resets its refused connection ends nobody else', async () => {
  await resetRefusedUpgrades(venue.wsUrl.replace('ws', 'http'))
  const socket = await opened()
  assert.ok(socket)
  socket.close()
})

test('an address has a limit of open connections, and one that ends makes a place free', async () => {
  await settings({ wsConnectionsPerAddress: 2 })
  const [first, second] = [await opened(), await opened()]
  assert.ok(first && second)
  assert.equal(await opened(), undefined)
  first.close()
  const third = await eventually('a place', opened)
  for (const socket of [second, third]) socket.close()
  await settings({ wsConnectionsPerAddress: 0 })
})

test('an address has a limit of new connections per minute', async () => {
  await settings({ wsNewPerMinute: 8 })
  const tries = [1, 2, 3, 4, 5, 6, 7, 8, 9]
  const sockets = await Promise.all(tries.map(opened))
  const lost = sockets.filter((socket) => socket === undefined).length
  // Those of the previous test count, too.
  assert.ok(lost >= 1 && lost < tries.length, String(lost))
  for (const socket of sockets) socket?.close()
  assert.equal(await opened(), undefined)
  await settings({ wsNewPerMinute: 0 })
  const free = await opened()
  assert.ok(free)
  free.close()
})

test('an address has a limit of subscribed users over all connections', async () => {
  await settings({ wsUsersPerAddress: 2 })
  const [one, two] = [1, 2].map(() => new WebSocketTransport({ url: venue.wsUrl, timeout: 500 }))
  assert.ok(one && two)
  const follow = (transport: WebSocketTransport, user: number, type = 'userFills') =>
    transport.subscribe(type, { type, user: userAt(user) }, () => {})
  const first = await follow(one, 1)
  await follow(two, 2)
  await follow(two, 1)
  await follow(one, 2, 'orderUpdates')
  await assert.rejects(follow(one, 3))
  await first.unsubscribe()
  await assert.rejects(follow(one, 3))
  two.close()
  await eventually('another user can subscribe', () => follow(one, 3).catch(() => undefined))
  one.close()
  await settings({ wsUsersPerAddress: 0 })
})
