import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isPublicAddress } from './public-ip-address.ts'

const closed =
  '0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.127.255.255 127.0.0.1 127.1.1.1 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.8 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9 224.0.0.1 240.0.0.1 255.255.255.255 :: ::1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:8.8.8.8 ::127.0.0.1 64:ff9b::7f00:1 64:ff9b:1::1 100::1 2001::1 2001:db8::1 2002:7f00:1:: 3fff::1 fc00::1 fd12:3456::1 fe80::1 fec0::1 ff02::1 fe80::1%eth0'
const open =
  '1.1.1.1 8.8.8.8 100.63.255.255 100.128.0.1 172.15.0.1 172.32.0.1 198.17.0.1 223.255.255.255 2606:4700::1111 2a00:1450::8 2001:200::1 2620:fe::fe'
const malformed =
  '127.1 0x7f.1 2130706433 0177.0.0.1 1.2.3.4.5 256.1.1.1 1.2.3 ::1::2 1:2:3 g::1 localhost'.split(' ')

test('addresses of special use are not public', () => {
  for (const address of [...closed.split(' '), ...malformed, '', ' 8.8.8.8'])
    assert.equal(isPublicAddress(address), false, address)
})

test('the neighbours of special ranges are public', () => {
  for (const address of open.split(' ')) assert.equal(isPublicAddress(address), true, address)
})
