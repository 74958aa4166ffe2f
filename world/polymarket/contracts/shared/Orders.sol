// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";

struct Order {
    uint256 salt;
    address maker;
    address signer;
    uint256 tokenId;
    uint256 makerAmount;
    uint256 takerAmount;
    /// 0 buys, 1 sells.
    uint8 side;
    uint8 signatureType;
    uint256 timestamp;
    bytes32 metadata;
    bytes32 builder;
}

interface IOwners {
    function isOwner(address account) external view returns (bool);
}

/// Hashes and signatures of orders, as the published clients sign them.
library Orders {
    bytes32 private constant DOMAIN_TYPE =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    bytes32 private constant ORDER_TYPE = keccak256(
        "Order(uint256 salt,address maker,address signer,uint256 tokenId,uint256 makerAmount,uint256 takerAmount,"
        "uint8 side,uint8 signatureType,uint256 timestamp,bytes32 metadata,bytes32 builder)"
    );
    uint8 private constant EOA = 0;
    uint8 private constant SAFE = 2;
    uint8 private constant DEPOSIT_WALLET = 3;

    function domainSeparator(string memory version) internal view returns (bytes32) {
        bytes32 nameHash = keccak256("Polymarket CTF Exchange");
        return keccak256(
            abi.encode(DOMAIN_TYPE, nameHash, keccak256(bytes(version)), block.chainid, address(this))
        );
    }

    function hash(Order memory order, bytes32 domain) internal pure returns (bytes32) {
        return MessageHashUtils.toTypedDataHash(domain, keccak256(abi.encode(ORDER_TYPE, order)));
    }

    function isSigned(Order memory order, bytes32 orderHash, bytes memory signature)
        internal
        view
        returns (bool)
    {
        if (order.signatureType == DEPOSIT_WALLET) return _isSignedByWallet(order, orderHash, signature);
        (address signer, ECDSA.RecoverError problem,) = ECDSA.tryRecover(orderHash, signature);
        if (problem != ECDSA.RecoverError.NoError || signer != order.signer) return false;
        if (order.signatureType == EOA) return order.maker == signer;
        return order.signatureType == SAFE && order.maker.code.length > 0 && IOwners(order.maker).isOwner(signer);
    }

    /// The wallet is its own signer, and reads what its owner signed.
    function _isSignedByWallet(Order memory order, bytes32 orderHash, bytes memory signature)
        private
        view
        returns (bool)
    {
        if (order.maker != order.signer || order.maker.code.length == 0) return false;
        (bool ok, bytes memory answer) =
            order.maker.staticcall(abi.encodeCall(IERC1271.isValidSignature, (orderHash, signature)));
        return ok && answer.length == 32
            && abi.decode(answer, (bytes32)) == bytes32(IERC1271.isValidSignature.selector);
    }
}
