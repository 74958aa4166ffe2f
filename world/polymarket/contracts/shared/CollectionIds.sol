// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// The id of a set of outcomes is the x of a point on the curve alt_bn128 (y^2 = x^3 + 3), with the parity of y in bit
/// 254. The point of a deeper collection is the sum of the points on its path, in any order.
library CollectionIds {
    uint256 private constant FIELD = 21888242871839275222246405745257275088696311157297823662689037894645226208583;
    uint256 private constant Y_IS_ODD = 1 << 254;

    error NotAPoint(bytes32 collectionId);

    function idOf(bytes32 parent, bytes32 conditionId, uint256 indexSet) internal view returns (bytes32) {
        (uint256 x, uint256 y) = _hashed(conditionId, indexSet);
        if (parent != bytes32(0)) (x, y) = _sum(parent, x, y);
        return bytes32(y & 1 == 1 ? x ^ Y_IS_ODD : x);
    }

    /// The first point after the hash. The hash's highest bit chooses between the two y.
    function _hashed(bytes32 conditionId, uint256 indexSet) private view returns (uint256 x, uint256 y) {
        uint256 hash = uint256(keccak256(abi.encodePacked(conditionId, indexSet)));
        bool isOdd = hash >> 255 == 1;
        x = hash;
        bool isFound = false;
        while (!isFound) {
            x = addmod(x, 1, FIELD);
            (y, isFound) = _root(x);
        }
        if ((y & 1 == 1) != isOdd) y = FIELD - y;
    }

    function _sum(bytes32 parent, uint256 x, uint256 y) private view returns (uint256, uint256) {
        bool isOdd = uint256(parent) >> 254 != 0;
        uint256 parentX = uint256(parent) & (Y_IS_ODD - 1);
        (uint256 parentY, bool isFound) = _root(parentX);
        require(isFound, NotAPoint(parent));
        if ((parentY & 1 == 1) != isOdd) parentY = FIELD - parentY;
        // The precompiled contract adds points of this curve.
        (bool isAdded, bytes memory sum) = address(6).staticcall(abi.encode(parentX, parentY, x, y));
        require(isAdded, NotAPoint(parent));
        return abi.decode(sum, (uint256, uint256));
    }

    /// A y of the curve at x, if there is one: the field's prime is 3 modulo 4.
    function _root(uint256 x) private view returns (uint256 y, bool isFound) {
        uint256 square = addmod(mulmod(mulmod(x, x, FIELD), x, FIELD), 3, FIELD);
        (, bytes memory power) =
            address(5).staticcall(abi.encode(32, 32, 32, square, (FIELD + 1) / 4, FIELD));
        y = abi.decode(power, (uint256));
        isFound = mulmod(y, y, FIELD) == square;
    }
}
