/** Addresses that strangers name: 60 forms of addresses inside, and resolvers that lie. */
import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { guardedFetch, RefusedAddress, refusalOf } from '#upstreams/guarded-fetch/guarded-fetch.ts'

const hosts =
  '127.0.0.1 127.1 127.0.1 0x7f.1 0x7f000001 2130706433 017700000001 0177.0.0.1 127.0.0.1. localhost localhost. a.localhost LOCALHOST 0 0.0.0.0 0x0 10.0.0.1 10.1 0xa.1 172.16.0.1 172.31.255.254 192.168.0.1 192.168.1 0xc0a80001 3232235521 169.254.169.254 0xa9fea9fe 2852039166 169.254.43518 100.64.0.1 198.18.0.1 192.0.2.1 203.0.113.1 224.0.0.1 255.255.255.255 [::] [::1] [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1] [::ffff:7f00:1] [::ffff:a9fe:a9fe] [64:ff9b::7f00:1] [2002:7f00:1::] [fc00::1] [fd00:ec2::254] [fe80::1] [ff02::1] metadata metadata.google.internal printer.local router.lan 127。0。0。1 ①②⑦.⓪.⓪.①'.split(
    ' ',
  )
const urls = [
  ...hosts.map((host) => `https://${host}/client.json`),
  'http://example.com/client.json',
  'https://user:secret@example.com/',
  'https://example.com:8443/',
  'https://example.com:22/',
  'gopher://example.com/',
  'file:///etc/passwd',
  'ftp://example.com/',
  'data:application/json,{}',
  'no url',
]

test('no form of an inner address is fetched', async () => {
  await using guarded = guardedFetch()
  for (const url of urls) {
    assert.ok(refusalOf(url), url)
    await assert.rejects(guarded.fetch(url), RefusedAddress, url)
  }
  assert.ok(urls.length >= 60, `${urls.length} forms`)
  assert.equal(refusalOf('https://example.com/client.json'), undefined)
})

test('a name that leads inside is refused before a socket opens, also beside a public address', async () => {
  let connections = 0
  const server = createServer((socket) => {
    connections += 1
    socket.destroy()
  }).listen(0, '127.0.0.1')
  for (const answers of [['127.0.0.1'], ['93.184.216.34', '127.0.0.1'], ['::1'], []]) {
    await using guarded = guardedFetch({
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
  server.close()
  assert.equal(connections, 0)
})
