// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// Makes the packed calls in the name of the Safe that delegates to it. Each is one byte of operation, the target, the
/// value, the length of the data and the data. Inner delegate calls are refused.
contract MultiSend {
    error OnlyCalls(uint8 operation);
    error Malformed();

    function multiSend(bytes calldata transactions) external payable {
        uint256 offset = 0;
        while (offset < transactions.length) {
            require(transactions.length >= offset + 85, Malformed());
            require(transactions[offset] == 0, OnlyCalls(uint8(transactions[offset])));
            address to = address(bytes20(transactions[offset + 1:offset + 21]));
            uint256 value = uint256(bytes32(transactions[offset + 21:offset + 53]));
            uint256 length = uint256(bytes32(transactions[offset + 53:offset + 85]));
            offset += 85;
            require(transactions.length - offset >= length, Malformed());
            (bool ok, bytes memory answer) = to.call{value: value}(transactions[offset:offset + length]);
            if (!ok) {
                assembly ("memory-safe") {
                    revert(add(answer, 32), mload(answer))
                }
            }
            offset += length;
        }
    }
}
