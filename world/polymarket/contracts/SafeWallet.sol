// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {ERC1155Holder} from "@openzeppelin/contracts/token/ERC1155/utils/ERC1155Holder.sol";
import {ERC721Holder} from "@openzeppelin/contracts/token/ERC721/utils/ERC721Holder.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";
import {Addresses} from "./shared/Addresses.sol";

/// The code of wallets from before deposit wallets: the part of a Safe with one owner that a migration needs. Written
/// from the published interface and EIP-712 types. The owner stands behind the code of the proxy. Refunds of gas,
/// modules and changes of owners are left out.
contract SafeWallet is IERC1271, ERC721Holder, ERC1155Holder {
    string public constant VERSION = "1.3.0";
    bytes32 private constant DOMAIN_TYPE = keccak256("EIP712Domain(uint256 chainId,address verifyingContract)");
    bytes32 private constant TRANSACTION_TYPE = keccak256(
        "SafeTx(address to,uint256 value,bytes data,uint8 operation,uint256 safeTxGas,uint256 baseGas,uint256 gasPrice,"
        "address gasToken,address refundReceiver,uint256 nonce)"
    );
    bytes32 private constant MESSAGE_TYPE = keccak256("SafeMessage(bytes message)");
    uint8 private constant DELEGATE_CALL = 1;

    uint256 public nonce;

    error InvalidSignature();
    error RefundsNotSupported();
    error NotMultiSend(address target);

    event ExecutionSuccess(bytes32 txHash, uint256 payment);

    receive() external payable {}

    /// Delegates calls to MultiSend alone.
    function execTransaction(
        address to,
        uint256 value,
        bytes calldata data,
        uint8 operation,
        uint256 safeTxGas,
        uint256 baseGas,
        uint256 gasPrice,
        address gasToken,
        address payable refundReceiver,
        bytes calldata signatures
    ) external payable returns (bool) {
        require(gasPrice == 0, RefundsNotSupported());
        bytes32 hash = getTransactionHash(
            to, value, data, operation, safeTxGas, baseGas, gasPrice, gasToken, refundReceiver, nonce
        );
        require(_isSigned(hash, signatures), InvalidSignature());
        nonce++;
        require(operation != DELEGATE_CALL || to == Addresses.MULTI_SEND, NotMultiSend(to));
        (bool ok, bytes memory answer) =
            operation == DELEGATE_CALL ? to.delegatecall(data) : to.call{value: value}(data);
        if (!ok) {
            assembly ("memory-safe") {
                revert(add(answer, 32), mload(answer))
            }
        }
        emit ExecutionSuccess(hash, 0);
        return true;
    }

    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4) {
        bytes32 message = keccak256(abi.encode(MESSAGE_TYPE, keccak256(abi.encode(hash))));
        bool isValid = _isSigned(MessageHashUtils.toTypedDataHash(domainSeparator(), message), signature);
        return isValid ? IERC1271.isValidSignature.selector : bytes4(0xffffffff);
    }

    function getTransactionHash(
        address to,
        uint256 value,
        bytes calldata data,
        uint8 operation,
        uint256 safeTxGas,
        uint256 baseGas,
        uint256 gasPrice,
        address gasToken,
        address refundReceiver,
        uint256 nonce_
    ) public view returns (bytes32) {
        bytes memory end = abi.encode(safeTxGas, baseGas, gasPrice, gasToken, refundReceiver, nonce_);
        bytes memory start = abi.encode(TRANSACTION_TYPE, to, value, keccak256(data), operation);
        return MessageHashUtils.toTypedDataHash(domainSeparator(), keccak256(bytes.concat(start, end)));
    }

    function domainSeparator() public view returns (bytes32) {
        return keccak256(abi.encode(DOMAIN_TYPE, block.chainid, address(this)));
    }

    function isOwner(address account) public view returns (bool) {
        bytes memory code = address(this).code;
        bytes20 last;
        assembly ("memory-safe") {
            last := mload(add(add(code, 32), sub(mload(code), 20)))
        }
        return account == address(last);
    }

    function getThreshold() external pure returns (uint256) {
        return 1;
    }

    /// A v above 30 says that the hash was signed as a message.
    function _isSigned(bytes32 hash, bytes calldata signature) private view returns (bool) {
        if (signature.length != 65) return false;
        uint8 v = uint8(signature[64]);
        bytes32 digest = v > 30 ? MessageHashUtils.toEthSignedMessageHash(hash) : hash;
        (address signer, ECDSA.RecoverError problem,) = ECDSA.tryRecover(
            digest, v > 30 ? v - 4 : v, bytes32(signature[:32]), bytes32(signature[32:64])
        );
        return problem == ECDSA.RecoverError.NoError && isOwner(signer);
    }
}
