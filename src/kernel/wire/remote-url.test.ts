import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isRemote, isRemoteDatabase, isUnencryptedRemote, isUnencryptedRemoteDatabase } from './remote-url.ts'

test('this machine is not remote, under any of its names', () => {
  for (const url of ['http://127.0.0.1:8545', 'http://localhost', 'http://[::1]:1/', 'http://127.1.2.3'])
    assert.equal(isRemote(url), false, url)
  for (const url of ['http://10.0.0.1', 'http://127.0.0.1.example', 'https://node.example'])
    assert.equal(isRemote(url), true, url)
  assert.deepEqual([undefined, 'local'].map(isRemote), [false, false])
})

test('another machine without TLS is distinguished from one with it', () => {
  assert.equal(isUnencryptedRemote('http://node.example'), true)
  assert.equal(isUnencryptedRemote('wss://node.example'), false)
  assert.equal(isUnencryptedRemote('http://127.0.0.1'), false)
})

test('a database on a socket is local, and a remote one needs TLS', () => {
  const sockets = [
    'postgresql:///db?host=/var/run',
    'postgresql://u@localhost/db',
    'postgresql://u@%2Ftmp/db',
  ]
  assert.deepEqual(sockets.map(isRemoteDatabase), [false, false, false])
  assert.equal(isRemoteDatabase('postgresql://u@db.example/db'), true)
  assert.equal(isRemoteDatabase('postgresql://u@localhost/db?host=db.example'), true)
  assert.equal(isUnencryptedRemoteDatabase('postgresql://u@db.example/db'), true)
  assert.equal(isUnencryptedRemoteDatabase('postgresql://u@db.example/db?sslmode=prefer'), true)
  assert.equal(isUnencryptedRemoteDatabase('postgresql://u@db.example/db?sslmode=verify-full'), false)
  assert.equal(isUnencryptedRemoteDatabase('postgresql://u@127.0.0.1/db'), false)
})
