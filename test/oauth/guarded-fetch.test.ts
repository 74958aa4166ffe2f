/** Addresses that strangers name, as client metadata documents and webhooks: forms of inner ones, resolvers that lie. */
import assert from 'node:assert/strict'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { test } from 'node:test'
import { openGuardedFetch, RefusedAddress, refusalOf } from '#upstreams/guarded-fetch/guarded-fetch.ts'
import { innerAnswers, innerUrls } from '../proof/support/inner-urls.ts'

test('no form of an inner address is fetched, as a client metadata document or as a webhook', async () => {
  await using documents = openGuardedFetch()
  await using webhooks = openGuardedFetch({ connections: 64, allowLoopback: false })
  for (const url of innerUrls) {
    assert.ok(refusalOf(url), url)
    for (const guarded of [documents, webhooks]) {
      assert.ok(guarded.refusalOf(url), url)
      await assert.rejects(guarded.fetch(url), RefusedAddress, url)
    }
  }
  assert.ok(innerUrls.length >= 60, `${innerUrls.length} forms`)
  assert.equal(refusalOf('https://example.com/client.json'), undefined)
  assert.equal(refusalOf('https://example.com:443/client.json'), undefined)
})

/** Counts connections of this machine. */
function countConnections() {
  let count = 0
  const server = createServer((socket) => {
    count += 1
    socket.destroy()
  }).listen(0, '127.0.0.1')
  return { count: () => count, [Symbol.dispose]: () => void server.close() }
}

test('a name that leads inside is refused before a socket opens, also beside a public address', async () => {
  using server = countConnections()
  for (const allowLoopback of [false, true])
    for (const answers of innerAnswers) {
      await using guarded = openGuardedFetch({
        allowLoopback,
        lookup: (_name, _options, callback) =>
          callback(
            null,
            answers.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
          ),
      })
      await assert.rejects(guarded.fetch('https://rebinding.example.com/'), (error: Error) => {
        assert.ok(error.cause instanceof RefusedAddress, String(error.cause))
        return true
      })
    }
  assert.equal(server.count(), 0)
})

test('this machine is reached only where the setting allows it, over http, and no further', async () => {
  const server = createHttpServer((_request, response) => response.writeHead(204).end()).listen(0)
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  await using local = openGuardedFetch({ allowLoopback: true })
  for (const host of ['127.0.0.1', 'localhost']) {
    assert.equal((await local.fetch(`http://${host}:${port}/`)).status, 204, host)
    assert.ok(refusalOf(`http://${host}:${port}/`), host)
  }
  const others = [`http://u@127.0.0.1:${port}/`, `https://127.0.0.1:${port}/`, `http://127.0.0.2:${port}/`]
  for (const url of [...others, 'http://10.0.0.1/', 'http://169.254.169.254/', 'http://a.localhost/'])
    await assert.rejects(local.fetch(url), RefusedAddress, url)
  server.closeAllConnections()
  server.close()
})

test('a redirect is an answer and is not followed', async () => {
  const server = createHttpServer((_request, response) =>
    response.writeHead(307, { location: 'http://127.0.0.1:1/inner' }).end(),
  ).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  await using local = openGuardedFetch({ allowLoopback: true })
  const { port } = server.address() as AddressInfo
  assert.equal((await local.fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: '{}' })).status, 307)
  server.closeAllConnections()
  server.close()
})
